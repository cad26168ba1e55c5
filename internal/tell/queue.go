package tell

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/observe"
)

const (
	// most is how many events may wait, not counting end events.
	// INVARIANT I11.
	most = 4096

	blockedAfter = 5 * time.Second // without an event told: the Observer blocks
	warnAgain    = time.Minute     // between two warnings of one kind
)

// A Queue delivers events to one Observer, in the order in which they arrive, on one
// goroutine, which ends when there are none. The sender of an event does not wait for
// the Observer, even if that panics, blocks, or ends its goroutine. The zero Queue has
// no Observer, and takes no events. A Queue must not be copied.
type Queue struct {
	observer observe.Observer
	logger   *slog.Logger // nil: slog.Default at the time
	run      func()       // deliver, as a value, so that to start it allocates nothing

	told atomic.Uint64 // how many events were delivered

	mu       sync.Mutex    // guards what follows
	list     list          // of the events that are not told; see there
	taken    uint64        // how many events ever came that were not dropped
	running  bool          // there is a goroutine; what is the goroutine's is its own
	idle     chan struct{} // closed when the goroutine ends; nil if no caller waits for that
	watching bool          // the timer of watch runs
	warned   bool          // that the Observer blocks
	dropped  int           // events, since the last warning
	saidDrop time.Time     // when the last warning of that was

	// The goroutine's.
	batch  []observe.Event // what it tells, a part of list
	next   int             // the first of batch that it has not begun to tell
	panics panics
}

// Init sets the Observer, before anything else is called. It may be nil. A nil logger
// is slog.Default at the time.
func (q *Queue) Init(observer observe.Observer, logger *slog.Logger) {
	q.observer, q.logger, q.run = observer, logger, q.deliver
}

// On reports whether there is an Observer.
func (q *Queue) On() bool { return q.observer != nil }

// Tell takes an event, and reports whether it has. It drops the event if there is no
// Observer, or if too many are waiting, unless it must take the end of something whose
// beginning was taken. So the number of waiting events is bounded by the number that was
// ever under way at once.
func (q *Queue) Tell(e *observe.Event, must bool) bool {
	if q.observer == nil {
		return false
	}
	now := time.Now()
	q.mu.Lock()
	if !must && q.waitingLocked() >= most {
		q.dropped++
		q.mu.Unlock()
		return false
	}
	q.taken++
	to := q.list.add()
	*to = *e
	to.Time, to.Context = now, cmp.Or(e.Context, context.Background())
	start := !q.running
	q.running = true
	if !q.watching {
		q.watching = true
		q.watchLocked(blockedAfter)
	}
	q.mu.Unlock()
	if start {
		go q.run()
	}
	return true
}

// waitingLocked returns how many events were taken and not told.
func (q *Queue) waitingLocked() uint64 { return q.taken - q.told.Load() }

// deliver tells what there is until there is nothing more.
func (q *Queue) deliver() {
	done := false
	defer func() {
		if !done { // the Observer has ended the goroutine
			go q.run()
		}
	}()
	for q.take() {
		for q.next < len(q.batch) {
			q.next++
			q.call(&q.batch[q.next-1])
		}
	}
	done = true
}

// take makes the next batch of the events that have come, or ends the goroutine.
func (q *Queue) take() bool {
	if q.next < len(q.batch) {
		return true // left by a goroutine that the Observer has ended
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list.drop(len(q.batch))
	q.batch, q.next = q.list.first(), 0
	for len(q.batch) == 0 {
		if n := q.dropsLocked(); n > 0 {
			q.mu.Unlock()
			q.warnDropped(n)
			q.mu.Lock()
			q.batch = q.list.first()
			continue
		}
		q.running = false
		if q.idle != nil {
			close(q.idle)
			q.idle = nil
		}
		return false
	}
	return true
}

// call tells one event.
func (q *Queue) call(e *observe.Event) {
	defer func() {
		q.told.Add(1)
		if p := recover(); p != nil {
			q.warnPanic(e, p)
		}
	}()
	q.observer(*e)
}

// Wait waits until all events are delivered, ctx ends, or none was delivered for the time
// of patience. It then logs how many are left, and returns that.
func (q *Queue) Wait(ctx context.Context, patience time.Duration) (untold int) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		q.mu.Lock()
		if !q.running {
			q.mu.Unlock()
			q.sayDrops()
			return 0
		}
		if q.idle == nil {
			q.idle = make(chan struct{})
		}
		idle, told := q.idle, q.told.Load()
		q.mu.Unlock()
		select {
		case <-idle:
			q.sayDrops()
			return 0
		case <-ctx.Done():
			return q.giveUp()
		case <-timer.C:
			if q.told.Load() == told {
				return q.giveUp()
			}
			timer.Reset(patience)
		}
	}
}

// dropsLocked returns how many events were dropped, if that is to be logged: an
// Observer that is too slow all the time would fill the log.
func (q *Queue) dropsLocked() (n int) {
	if now := time.Now(); q.dropped > 0 && (q.saidDrop.IsZero() || now.Sub(q.saidDrop) >= warnAgain) {
		n, q.dropped, q.saidDrop = q.dropped, 0, now
	}
	return n
}

// sayDrops logs at once how many events were dropped, if any.
func (q *Queue) sayDrops() {
	q.mu.Lock()
	dropped := q.dropped
	q.dropped = 0
	q.mu.Unlock()
	q.warnDropped(dropped)
}

// giveUp logs how many events are not told.
func (q *Queue) giveUp() (untold int) {
	q.mu.Lock()
	untold = int(q.waitingLocked())
	q.mu.Unlock()
	q.sayDrops()
	if untold > 0 {
		q.warn("holdfast: closed before the Observer was told everything: it blocks, or is slow", slog.Int("untold", untold))
	}
	return untold
}

// watchLocked looks after a while whether an event was delivered meanwhile.
func (q *Queue) watchLocked(pause time.Duration) {
	told := q.told.Load()
	time.AfterFunc(pause, func() { q.watch(told) })
}

// watch looks whether the Observer blocks: told was the number of delivered events when
// there was one waiting. It looks again as long as there are any, or dropped ones to be logged.
func (q *Queue) watch(told uint64) {
	q.mu.Lock()
	if !q.running && q.dropped == 0 {
		q.watching = false
		q.mu.Unlock()
		return
	}
	blocks := q.running && q.told.Load() == told
	warn := blocks && !q.warned
	q.warned = blocks
	waiting, dropped := q.waitingLocked(), q.dropsLocked()
	q.mu.Unlock()
	if warn {
		q.warn("holdfast: the Observer blocks: it is told nothing until it returns, and events are dropped if too many wait; locks go on",
			slog.Duration("for", blockedAfter), slog.Uint64("waiting", waiting))
	}
	q.warnDropped(dropped)
	pause := blockedAfter
	if blocks {
		pause = warnAgain
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.watchLocked(pause)
}
