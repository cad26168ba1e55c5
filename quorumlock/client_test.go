package quorumlock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// client returns a client of the library on r's engine.
func (r *rig) client() *holdfast.Client {
	r.Helper()
	c, err := holdfast.New(r.Engine, &holdfast.Options{TTL: ttl})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(c.Shutdown(ctx), c.Close()); err != nil { // cleanups continue until the stores answer
			r.Errorf("Close: %v", err)
		}
	})
	return c
}

// TestClientsTakeTurns checks that clients of the library wait for each other on a quorum with one
// silent and one slow member.
func TestClientsTakeTurns(t *testing.T) {
	virtual(t, func(t *testing.T) {
		some := stores(t, 3)
		var mu sync.Mutex
		var tokens []uint64
		working := 0
		var wg sync.WaitGroup
		for range 5 {
			r := newRig(t, some)
			r.links[0].set(silent)
			r.links[1].slow(20 * time.Millisecond)
			c := r.client()
			wg.Go(func() {
				for range 4 {
					err := c.Do(t.Context(), "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
						mu.Lock()
						tokens = append(tokens, l.Token())
						working++
						if working != 1 {
							t.Errorf("%d at work", working)
						}
						mu.Unlock()
						time.Sleep(300 * time.Millisecond)
						mu.Lock()
						working--
						mu.Unlock()
						return ctx.Err()
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if len(tokens) != 20 || !slices.IsSorted(tokens) {
			t.Errorf("%d tokens, sorted %t; want 20 that grow", len(tokens), slices.IsSorted(tokens))
		}
	})
}

// TestClientKeepsLease checks that a lease that is kept alive survives the loss of each member in
// turn, and that its holder learns when a majority has failed.
func TestClientKeepsLease(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		lease, err := r.client().Acquire(r.Context(), "a", nil)
		if err != nil {
			r.Fatal(err)
		}
		for i := range 9 {
			r.links[i%3].set([]linkState{down, silent, deaf}[i/3])
			time.Sleep(3 * ttl)
			r.links[i%3].set(up)
			time.Sleep(ttl)
			if !lease.Valid() {
				r.Fatalf("the lease was lost with member %d: %v", i%3+1, context.Cause(lease.Context()))
			}
		}
		gone := time.Now()
		r.links[0].set(silent)
		r.links[1].set(down)
		<-lease.Context().Done()
		if took := time.Since(gone); took > ttl || !errors.Is(context.Cause(lease.Context()), holdfast.ErrLost) {
			r.Errorf("notified after %s of a TTL of %s: %v", took, ttl, context.Cause(lease.Context()))
		}
		_ = lease.Release(r.Context())
	})
}

// However short the wait is, a quorum has the time of one request to answer. A free lock is
// granted, alone and together with others, and the error for a held lock names the holder.
func TestShortestWaitOnQuorum(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		for _, l := range r.links {
			l.slow(20 * time.Millisecond)
		}
		c, opts := r.client(), &holdfast.AcquireOptions{MaxWait: time.Microsecond}
		err := c.Do(r.Context(), "a", opts, func(ctx context.Context, _ *holdfast.Lease) error {
			all, err := c.AcquireAll(ctx, []string{"b", "c"}, opts)
			if err != nil {
				return err
			}
			if _, err := c.Acquire(r.Context(), "b", opts); !errors.Is(err, holdfast.ErrHeld) {
				r.Errorf("held: %v", err)
			}
			return all.Release(ctx)
		})
		if err != nil {
			r.Error(err)
		}
	})
}
