package show

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Rounds read the locks of a store, again and again.
type Rounds struct {
	List     func(context.Context) iter.Seq2[lockinfo.LockState, error] // lists the locks, in steps that do not block the store
	Probe    func(context.Context) error                                // makes one request, within its time limit
	Interval time.Duration                                              // from the beginning of one round to the beginning of the next
	Wake     <-chan struct{}                                            // starts the next round sooner; may be nil
}

// A Round is the result of one round.
type Round struct {
	Locks []lockinfo.LockState
	At    time.Time // when it ended
	Err   error     // why there are no Locks; it wraps driver.ErrUnavailable
}

const (
	// roundShare bounds the share of the time that rounds take to one in roundShare. If rounds
	// are slow, the pauses between them exceed the interval.
	roundShare = 5

	// roundPatience is how long a round may take before a probe checks the store. A list may be
	// long, so the round itself has no time limit.
	roundPatience = 2 * time.Second

	// shortestPause is the shortest time from the start of one round to the next, even with
	// events.
	shortestPause = 100 * time.Millisecond
)

// Run reports one round after the other until ctx ends. It returns the error of a round, unless
// that says that the store does not answer.
func (r Rounds) Run(ctx context.Context, tell func(Round)) error {
	for {
		start := time.Now()
		locks, err := r.look(ctx)
		took := time.Since(start)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !IsOutage(err):
			return err
		}
		tell(Round{Locks: locks, At: time.Now(), Err: err})
		least := max(shortestPause-took, (roundShare-1)*took)
		if !pauseFor(ctx, least, nil) || !pauseFor(ctx, max(r.Interval-took-least, 0), r.Wake) {
			return nil
		}
	}
}

// pauseFor waits for d, or until wake delivers a value. It returns false if ctx has ended.
func pauseFor(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
	case <-wake:
	case <-ctx.Done():
		return false
	}
	return true
}

// look runs one round.
func (r Rounds) look(ctx context.Context) (locks []lockinfo.LockState, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	probed := make(chan struct{})
	go func() { // ends with ctx; it is awaited
		defer close(probed)
		r.probe(ctx, cancel)
	}()
	locks, err = All(r.List(ctx))
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, driver.ErrUnavailable) {
		err = cause
	}
	cancel(nil)
	<-probed
	return locks, err
}

// probe ends ctx if the store does not answer.
func (r Rounds) probe(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(roundPatience)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := r.Probe(ctx); errors.Is(err, driver.ErrUnavailable) {
			cancel(err)
		}
	}
}
