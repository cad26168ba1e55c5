package tell

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/observe"
)

const (
	// most is how many events may wait before events without must are dropped.
	// INVARIANT I11.
	most = 4096

	blockedAfter = 5 * time.Second // an Observer blocks if no event is delivered for this time
	warnAgain    = time.Minute     // the least time between two warnings of one kind

	batchRoom = 16 // how many events fit into a batch
)

// A Queue delivers events to one Observer, in the order in which they arrive, on one
// goroutine, which ends when there are none. The sender of an event does not wait for
// the Observer, even if that panics, blocks, or ends its goroutine. The zero Queue has
// no Observer, and takes no events. A Queue must not be copied.
type Queue struct {
	observer observe.Observer
	logger   *slog.Logger // nil: slog.Default at the time
	run      func()       // deliver as a value, so that starting it does not allocate

	delivered atomic.Uint64 // how many events were delivered

	mu       sync.Mutex        // guards the fields up to dropped
	batches  [][]observe.Event // the events that deliver has not taken; all batches but the last are full
	spare    []observe.Event   // memory to reuse for a batch, or nil
	taken    uint64            // how many events were accepted
	running  bool              // the goroutine of deliver runs
	idle     chan struct{}     // closed when the goroutine ends; nil if no caller waits for that
	watching bool              // the timer of watch runs
	warned   bool              // it was logged that the Observer blocks
	dropped  count             // events that were dropped

	// Only the goroutine of deliver uses these.
	batch  []observe.Event // the events that it delivers
	next   int             // the index in batch of the next event to deliver
	panics count
}

// Init sets the Observer, which may be nil. It must be called before any other method. A nil
// logger means slog.Default at the time of a warning.
func (q *Queue) Init(observer observe.Observer, logger *slog.Logger) {
	q.observer, q.logger, q.run = observer, logger, q.deliver
}

// On reports whether there is an Observer.
func (q *Queue) On() bool { return q.observer != nil }

// Tell takes an event, and returns false if it drops it: there is no Observer, or too many events
// are waiting. With must, it takes the event even if too many are waiting. The caller sets must
// only for the end of something whose beginning was taken, so the number of waiting events stays
// bounded.
func (q *Queue) Tell(e *observe.Event, must bool) bool {
	if q.observer == nil {
		return false
	}
	now := time.Now()
	q.mu.Lock()
	if !must && q.waitingLocked() >= most {
		q.dropped.n++
		q.mu.Unlock()
		return false
	}
	q.taken++
	to := q.roomLocked()
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

// roomLocked returns where to put the next event. It moves no other event in memory.
func (q *Queue) roomLocked() *observe.Event {
	last := len(q.batches) - 1
	if last < 0 || len(q.batches[last]) == batchRoom {
		if q.spare == nil {
			q.spare = make([]observe.Event, 0, batchRoom)
		}
		q.batches, q.spare = append(q.batches, q.spare), nil
		last++
	}
	batch := append(q.batches[last], observe.Event{})
	q.batches[last] = batch
	return &batch[len(batch)-1]
}

// waitingLocked returns how many events were taken and not delivered.
func (q *Queue) waitingLocked() uint64 { return q.taken - q.delivered.Load() }

// deliver delivers the waiting events until none is left.
func (q *Queue) deliver() {
	done := false
	defer func() {
		if !done { // the Observer has ended this goroutine
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

// take sets the next batch. If there is none it returns false, and the goroutine must end.
func (q *Queue) take() bool {
	if q.next < len(q.batch) {
		return true // the Observer has ended the last goroutine in the middle of this batch
	}
	clear(q.batch) // for the garbage collector
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batch, q.next, q.spare = nil, 0, q.batch[:0]
	for len(q.batches) == 0 {
		n := q.dropped.due()
		if n == 0 {
			q.running = false
			if q.idle != nil {
				close(q.idle)
				q.idle = nil
			}
			return false
		}
		q.mu.Unlock()
		q.warnDropped(n)
		q.mu.Lock()
	}
	q.batch = q.batches[0]
	q.batches = slices.Delete(q.batches, 0, 1)
	return true
}

// call calls the Observer with one event.
func (q *Queue) call(e *observe.Event) {
	defer func() {
		q.delivered.Add(1)
		if p := recover(); p != nil {
			q.warnPanic(e, p)
		}
	}()
	q.observer(*e)
}

// Wait waits until all events are delivered, ctx ends, or no event was delivered for the time of
// patience. If events are left it logs and returns their number.
func (q *Queue) Wait(ctx context.Context, patience time.Duration) (undelivered int) {
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
		idle, delivered := q.idle, q.delivered.Load()
		q.mu.Unlock()
		select {
		case <-idle:
			q.sayDrops()
			return 0
		case <-ctx.Done():
			return q.giveUp()
		case <-timer.C:
			if q.delivered.Load() == delivered {
				return q.giveUp()
			}
			timer.Reset(patience)
		}
	}
}

// sayDrops logs at once how many events were dropped, if any.
func (q *Queue) sayDrops() {
	q.mu.Lock()
	dropped := q.dropped.n
	q.dropped.n = 0
	q.mu.Unlock()
	q.warnDropped(dropped)
}

// giveUp logs and returns how many events were not delivered.
func (q *Queue) giveUp() (undelivered int) {
	q.mu.Lock()
	undelivered = int(q.waitingLocked())
	q.mu.Unlock()
	q.sayDrops()
	if undelivered > 0 {
		q.warn("holdfast: closed before the Observer had received all events: it blocks, or is slow", slog.Int("undelivered", undelivered))
	}
	return undelivered
}

// watchLocked calls watch after a pause.
func (q *Queue) watchLocked(pause time.Duration) {
	delivered := q.delivered.Load()
	time.AfterFunc(pause, func() { q.watch(delivered) })
}

// watch warns if the Observer blocks: delivered was the number of delivered events a pause ago. It also
// logs dropped events. It runs again as long as events are waiting, or drops are not logged yet.
func (q *Queue) watch(delivered uint64) {
	q.mu.Lock()
	if !q.running && q.dropped.n == 0 {
		q.watching = false
		q.mu.Unlock()
		return
	}
	blocks := q.running && q.delivered.Load() == delivered
	warn := blocks && !q.warned
	q.warned = blocks
	waiting, dropped := q.waitingLocked(), q.dropped.due()
	q.mu.Unlock()
	if warn {
		q.warn("holdfast: the Observer blocks: it receives nothing until it returns, and events are dropped if too many wait; locks go on",
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
