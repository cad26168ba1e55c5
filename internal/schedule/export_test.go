package schedule

// Rows returns how many lists a timetable has.
func (t *Timetable[T]) Rows() int { return len(t.rows) }
