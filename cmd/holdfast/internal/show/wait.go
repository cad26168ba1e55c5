package show

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The pause between two looks is a tenth of the time waited, within these limits, plus or minus
// up to a quarter. So a long wait polls rarely, and waits that began together spread out.
const (
	shortestLook = 50 * time.Millisecond
	longestLook  = 2 * time.Second
	jitter       = 0.25

	// slack is how long after the expiry of a lease the next look happens.
	slack = 5 * time.Millisecond
	// lastLook is how long the look at the end of a wait may take.
	lastLook = 100 * time.Millisecond
)

// A Wait is a wait for locks.
type Wait struct {
	Look  func(context.Context) ([]lockinfo.LockState, error) // reads all locks
	Until time.Time                                           // when to give up; zero: never
	Tell  func(locks []lockinfo.LockState, err error)         // gets the latest locks, and the error of a failed look; may be nil
}

// IsTaken reports whether a lock has a holder or a queue, or is kept closed.
func IsTaken(lock lockinfo.LockState) bool { return len(lock.Holders) > 0 || lock.QueueLength > 0 }

// IsOutage reports whether an error means that the store may answer later. It does not if the store
// is a file that was deleted: that error is also driver.ErrClosed.
func IsOutage(err error) bool { return driver.Class(err) == driver.ErrUnavailable }

// Free waits until all locks are free in the same look, or until w.Until, and returns the latest
// locks. An outage of the store ends the wait only at w.Until or, without w.Until, if the first look
// fails.
func (w Wait) Free(ctx context.Context) (locks []lockinfo.LockState, free bool, err error) {
	began := time.Now()
	for first := true; ; first = false {
		seen, err := w.look(ctx, first)
		switch {
		case err == nil:
			locks = seen
		case ctx.Err() != nil:
			return locks, false, context.Cause(ctx)
		}
		if w.Tell != nil {
			w.Tell(locks, err)
		}
		switch over := !w.Until.IsZero() && !time.Now().Before(w.Until); {
		case err == nil && !slices.ContainsFunc(locks, IsTaken):
			return locks, true, nil
		case err != nil && (over || !IsOutage(err) || first && w.Until.IsZero()):
			return locks, false, err
		case over:
			return locks, false, nil
		}
		pauseFor(ctx, w.pause(time.Since(began), locks), nil) // the next look fails if ctx has ended
	}
}

// look reads the locks once. The first look has its full time, however short the wait is.
func (w Wait) look(ctx context.Context, first bool) ([]lockinfo.LockState, error) {
	looking := ctx
	if !first && !w.Until.IsZero() {
		var cancel context.CancelFunc
		looking, cancel = context.WithDeadline(ctx, w.Until.Add(lastLook))
		defer cancel()
	}
	locks, err := w.Look(looking)
	if err != nil && looking.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: no answer", driver.ErrUnavailable)
	}
	return locks, err
}

// pause returns how long to wait for the next look.
func (w Wait) pause(waited time.Duration, locks []lockinfo.LockState) time.Duration {
	d := min(max(waited/10, shortestLook), longestLook)
	d += time.Duration((2*rand.Float64() - 1) * jitter * float64(d))
	// A lock whose leases end before that may be free then.
	if end, known := lastEnd(locks); known && end+slack < d {
		d = max(end+slack, d/4)
	}
	if !w.Until.IsZero() {
		d = min(d, time.Until(w.Until))
	}
	return d
}

// lastEnd returns how long the locks are held at most if no lease is renewed. known is false if a
// lease never expires, or if there is none.
func lastEnd(locks []lockinfo.LockState) (end time.Duration, known bool) {
	for _, lock := range locks {
		for _, h := range lock.Holders {
			if h.ExpiresIn == lockinfo.Never {
				return 0, false
			}
			end, known = max(end, h.ExpiresIn), true
		}
	}
	return end, known
}
