package limit

// Callers returns how many callers are remembered.
func Callers(l *Limits) int { return len(l.callers) }
