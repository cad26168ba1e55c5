package sqlitelock

import "time"

// A process that writes without a pause has the write lock nearly all the time, and other
// processes, which retry now and then, would seldom find it free. So a waiting process shows
// that it waits, and a process that has used the lock for stintLength lets others write, for
// givesWayFor at most. This is about fairness only: SQLite excludes writers without it.
const (
	stintLength = 2 * time.Millisecond
	stintGap    = 200 * time.Microsecond // after a pause like this a stint is another one
	givesWayFor = 300 * time.Microsecond
	eagerPause  = 50 * time.Microsecond // between two attempts of a waiting process
	eagerTime   = 3 * time.Millisecond  // after which attempts are less frequent
)

// A stint is the time in which an engine has used the write lock again and again.
type stint struct{ began, ended time.Time }

// giveWay lets waiting processes write before this engine begins a transaction.
func (e *engine) giveWay() {
	now := time.Now()
	if now.Sub(e.stint.ended) > stintGap {
		e.stint.began = now
	}
	if now.Sub(e.stint.began) < stintLength {
		return
	}
	for end := now.Add(givesWayFor); e.files.OthersWait(); {
		if e.brief(eagerPause); time.Now().After(end) {
			break
		}
	}
	e.stint.began = time.Now()
}
