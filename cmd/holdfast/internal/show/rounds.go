package show

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Rounds look at the locks of a store.
type Rounds struct {
	List     func(context.Context) iter.Seq2[lockinfo.LockState, error] // lists them, in steps that do not hold the store up
	Probe    func(context.Context) error                                // makes one request, within its time limit
	Interval time.Duration                                              // from the beginning of one round to the beginning of the next
	Wake     <-chan struct{}                                            // something has happened: look sooner; may be nil
}

// A Round is what one round has seen.
type Round struct {
	Locks []lockinfo.LockState
	At    time.Time // when it ended
	Err   error     // why it has seen nothing: it wraps driver.ErrUnavailable
}

const (
	// roundShare is how much of the time a round may take: one in so many. If rounds take
	// long, the pauses between them become longer than the interval.
	roundShare = 5

	// roundPatience is how long a round may take before a probe checks the store. A list may be long, so it has no time limit of its own.
	roundPatience = 2 * time.Second

	// shortestPause is the shortest pause between two rounds, whatever happens meanwhile.
	shortestPause = 100 * time.Millisecond
)

// Run reports one round after the other, until ctx ends, or until a round fails for
// another reason than that the store does not answer, which it returns.
func (r Rounds) Run(ctx context.Context, tell func(Round)) error {
	for {
		start := time.Now()
		locks, err := r.look(ctx)
		took := time.Since(start)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, driver.ErrUnavailable):
			return err
		}
		tell(Round{Locks: locks, At: time.Now(), Err: err})
		least := max(shortestPause-took, (roundShare-1)*took)
		if !pauseFor(ctx, least, nil) || !pauseFor(ctx, max(r.Interval-took-least, 0), r.Wake) {
			return nil
		}
	}
}

// pauseFor waits for d, or until wake delivers a value, and reports whether ctx goes on.
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

// look is one round.
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
