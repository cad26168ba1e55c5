package schedule

// Rows returns the number of rows of a timetable.
func (t *Timetable[T]) Rows() int { return len(t.rows) }
