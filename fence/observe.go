package fence

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/internal/tell"
	"github.com/holdfast-locks/holdfast/observe"
)

// A Reporter sends a guard's decisions to an Observer: the kinds are observe.ClaimAccepted and
// observe.ClaimRefused. No claim waits for the Observer; see package observe. It is for
// authors of guards.
type Reporter struct{ queue tell.Queue }

// NewReporter returns a Reporter to o, which may be nil.
func NewReporter(o observe.Observer) *Reporter {
	r := &Reporter{}
	r.queue.Init(o, nil)
	return r
}

// Report reports the decision about a claim: err is nil or a *StaleError. Any other error,
// such as a broken connection, is not a decision and is not reported. A nil Reporter does
// nothing.
func (r *Reporter) Report(ctx context.Context, resource string, c Claim, err error) {
	if r == nil || !r.queue.On() {
		return
	}
	e := observe.Event{Kind: observe.ClaimAccepted, Context: ctx, Name: resource, Token: c.Token(), Current: c.Token()}
	switch stale, refused := errors.AsType[*StaleError](err); {
	case refused:
		e.Kind, e.Current, e.Err = observe.ClaimRefused, stale.Current, err
	case err != nil:
		return
	}
	r.queue.Tell(&e, false)
}

// Wait waits until the Observer has all events, for up to patience.
func (r *Reporter) Wait(patience time.Duration) {
	r.queue.Wait(context.Background(), patience)
}
