package pglock

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgtype/zeronull"
)

// A sweeper deletes what is stored for unused names. INVARIANT I11.
type sweeper struct {
	next  atomic.Int64 // when the next sweep is due, in nanoseconds since the engine was opened
	begun time.Time
	mu    sync.Mutex    // held during a sweep
	after zeronull.Text // the last name of the previous sweep
}

const (
	sweepEvery = time.Minute
	sweepSteps = 16 // of a sweep that finds nothing to delete
)

// start schedules the first sweep. Of the engines that are soon closed, as those of a command are,
// one in 16 sweeps.
func (s *sweeper) start() {
	s.begun = time.Now()
	if rand.N(16) > 0 {
		s.next.Store(int64(rand.N(sweepEvery)))
	}
}

// sweepLater sweeps in the background if it is time.
func (e *engine) sweepLater() {
	now := time.Since(e.sweeper.begun)
	if due := e.sweeper.next.Load(); int64(now) >= due && e.sweeper.next.CompareAndSwap(due, int64(now+sweepEvery/2+rand.N(sweepEvery))) {
		e.spawn(e.sweep)
	}
}

// sweep reads a bounded number of names, and continues as long as it finds something to delete.
func (e *engine) sweep() {
	e.sweeper.mu.Lock()
	defer e.sweeper.mu.Unlock()
	for steps, deleted := 0, true; deleted || steps < sweepSteps; steps++ {
		err := e.change(e.life, waiting, "sweep", []any{string(e.sweeper.after), micros(e.opts.TokenMemory), e.opts.History}, &e.sweeper.after, &deleted)
		if err != nil || e.sweeper.after == "" && !deleted {
			return
		}
	}
}
