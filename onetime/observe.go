package onetime

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/observe"
)

// tell sends the Observer what happened to a token, without waiting for it.
func (s *Service) tell(ctx context.Context, kind observe.Kind, d driver.Digest, err error) {
	s.events.Tell(&observe.Event{Kind: kind, Context: ctx, Name: s.opts.Name, TokenID: string(d), Err: err}, false)
}

// tellPruned reports a round of pruning to the Observer.
func (s *Service) tellPruned(ctx context.Context, n int, err error) {
	kind := observe.TokensPruned
	if err != nil {
		kind = observe.PruneFailed
	}
	s.events.Tell(&observe.Event{Kind: kind, Context: ctx, Name: s.opts.Name, Count: n, Err: err}, false)
}
