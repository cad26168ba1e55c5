package limit

// Callers returns how many callers l has in memory.
func Callers(l *Limits) int { return len(l.callers) }
