package fence

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/internal/tell"
	"github.com/holdfast-locks/holdfast/observe"
)

// A Reporter tells an Observer what a guard decides: the kinds are
// observe.ClaimAccepted and observe.ClaimRefused. No claim waits for the Observer; see
// package observe. It is for whoever writes a guard.
type Reporter struct{ queue tell.Queue }

// NewReporter returns a Reporter to o, which may be nil.
func NewReporter(o observe.Observer) *Reporter {
	r := &Reporter{}
	r.queue.Init(o, nil)
	return r
}

// Report tells what was answered to a claim, by its error: nil, or a *StaleError. Any
// other error is not a decision, such as a broken connection, and is not told. A nil
// Reporter tells nobody.
func (r *Reporter) Report(ctx context.Context, resource string, c Claim, err error) {
	if r == nil || !r.queue.On() {
		return
	}
	e := observe.Event{Kind: observe.ClaimAccepted, Context: ctx, Name: resource, Token: c.Token(), Current: c.Token()}
	if err != nil {
		var stale *StaleError
		if !errors.As(err, &stale) {
			return
		}
		e.Kind, e.Current, e.Err = observe.ClaimRefused, stale.Current, err
	}
	r.queue.Tell(&e, false)
}

// Wait waits until all is told, for up to patience.
func (r *Reporter) Wait(patience time.Duration) {
	r.queue.Wait(context.Background(), patience)
}
