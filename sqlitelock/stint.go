package sqlitelock

import "time"

// A process that has much to write has the write lock nearly all the time: others,
// who ask for it now and then, would seldom find it free. So whoever has waited for
// it says so to the other processes, and a process that has used it for stintLength
// gives way to them, for givesWayFor at most. Alone it gives way to nobody.
//
// It is only about time: with this or without it one process writes at once.
const (
	stintLength = 2 * time.Millisecond
	stintGap    = 200 * time.Microsecond // after a pause like this a stint is another one
	givesWayFor = 300 * time.Microsecond
	eagerPause  = 50 * time.Microsecond // between two looks of those who wait
	eagerTime   = 3 * time.Millisecond  // after which they look less often
)

// A stint is the time in which an engine has used the write lock again and again.
type stint struct{ began, ended time.Time }

// giveWay lets other processes write, if they wait, before an engine that has the
// turn begins a transaction.
func (e *Engine) giveWay() {
	now := time.Now()
	if now.Sub(e.stint.ended) > stintGap {
		e.stint.began = now
	}
	if now.Sub(e.stint.began) < stintLength {
		return
	}
	for end := now.Add(givesWayFor); e.witness.othersWait(e.path); {
		if e.brief(eagerPause); time.Now().After(end) {
			break
		}
	}
	e.stint.began = time.Now()
}
