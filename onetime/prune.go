package onetime

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// restFactor times the duration of a step is how long the pruner rests after it,
// so that redeems have most of the time.
const restFactor = 4

// Prune deletes what has expired: tokens after their Memory, and payloads that
// can no longer be redeemed, of every collection in the store. It returns
// how many tokens it deleted, even if an error ended it early. It works in
// steps of Options.PruneBatch, and rests between them so that redeems can go
// on.
//
// A Service prunes by itself from its first Issue or Redeem on; Prune is for a
// nightly job, and for a store that no Service runs on. It does nothing if
// the store forgets by itself. The count may be too low if a reply was lost.
func (s *Service) Prune(ctx context.Context) (n int, err error) {
	if err := s.open(); err != nil {
		return 0, opError("prune", "", err)
	}
	n, err = s.prune(ctx)
	if err != nil {
		return n, opError("prune", "", err)
	}
	return n, nil
}

func (s *Service) prune(ctx context.Context) (n int, err error) {
	for more := s.isPruned; more && err == nil; {
		began := time.Now()
		var deleted int
		deleted, more, err = s.pruneBatch(ctx)
		n += deleted
		if more && err == nil && !ask.Sleep(ctx, restFactor*time.Since(began)) {
			err = ask.ContextError(ctx)
		}
	}
	s.tellPruned(ctx, n, err)
	return n, err
}

// pruneBatch makes one step while no redeem is under way. Redeems that arrive
// meanwhile have a place in the queue before the next step.
func (s *Service) pruneBatch(ctx context.Context) (deleted int, more bool, err error) {
	if ctx.Err() != nil {
		return 0, false, ask.ContextError(ctx)
	}
	lease, err := s.client.Acquire(ctx, s.opts.Name, &holdfast.AcquireOptions{
		TTL: lockTTL, Reason: "prune one-time tokens",
	})
	if err != nil {
		return 0, false, err
	}
	defer lease.Release(ctx)
	f := ask.Until(ctx, s.opts.RequestTimeout, func(ctx context.Context) (err error) {
		deleted, more, err = s.vault.Prune(ctx, s.opts.PruneBatch)
		return err
	})
	if f != nil {
		return 0, false, f.Harmless()
	}
	return deleted, more, nil
}

// pruneRegularly is the pruner: it prunes until Close.
func (s *Service) pruneRegularly() {
	defer close(s.pruner)
	every := s.opts.PruneEvery
	for ask.Sleep(s.background, every-rand.N(every/4)) {
		_, _ = s.prune(s.background) // the Observer gets the error; the next round continues
	}
}
