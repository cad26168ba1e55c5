package sqlitelock

import "time"

// A process that writes without a pause has the write lock nearly all the time, and other
// processes, which retry at intervals, would seldom find it free. So a waiting process shows that
// it waits. A process that has used the lock for stintLength lets others write, for at most
// givesWayFor. This is only about fairness: SQLite excludes writers without it.
const (
	stintLength = 2 * time.Millisecond
	stintGap    = 200 * time.Microsecond // a longer pause begins a new stint
	givesWayFor = 300 * time.Microsecond
	eagerPause  = 50 * time.Microsecond // between two attempts of a waiting process
	eagerTime   = 3 * time.Millisecond  // after which attempts become less frequent
)

// A stint is a period in which an engine has used the write lock almost without a pause.
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
