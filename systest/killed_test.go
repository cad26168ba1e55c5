package systest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

const killedTTL = time.Second

// holdUntilDeath is a job: the crew acquires the lock and holds it, without renewing it, until the
// crew is killed.
func holdUntilDeath(ctx context.Context, j traffic.Job) (any, error) {
	client, _, err := j.Client(ctx, nil)
	if err != nil {
		return nil, err
	}
	lease, err := client.TryAcquire(ctx, j.Name, &holdfast.AcquireOptions{TTL: killedTTL, KeepAlive: holdfast.KeepAliveOff})
	if err != nil {
		return nil, err
	}
	j.Out(lease.Token())
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestKilledHolderIsFollowed checks that the lock of a killed holder is granted to the next when
// the lease expires, not earlier and not much later. INVARIANT I1, INVARIANT I7.
func TestKilledHolderIsFollowed(t *testing.T) {
	s := newStore(t)
	rival := newClient(t, s.engine, nil)
	var mu sync.Mutex
	earliest, latest, killed := time.Hour, time.Duration(0), 0
	t.Run("holders", func(t *testing.T) {
		for i := range soak.Count(6, 100) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				took := killHolder(t, s, rival, t.Name())
				mu.Lock()
				defer mu.Unlock()
				earliest, latest, killed = min(earliest, took), max(latest, took), killed+1
			})
		}
	})
	report.Row(t, "SIGKILL of the holder", "take-over between 0.99 TTL and TTL + 250 ms, never earlier",
		"%d holders: take-over after %s to %s of the store's clock, TTL %s", killed, earliest, latest, killedTTL)
	if earliest < killedTTL*99/100 || latest > killedTTL+250*time.Millisecond {
		t.Errorf("take-over after %s to %s, want between 0.99 and 1 TTL + 250 ms, with a TTL of %s", earliest, latest, killedTTL)
	}
}

// killHolder kills a holder at some time during its lease, and returns the time from its grant to
// the next grant. It is the difference of the tokens, because each token is the store's clock at
// the grant, in microseconds.
func killHolder(t *testing.T, s *store, rival *holdfast.Client, name string) time.Duration {
	t.Helper()
	h := traffic.Start(t, traffic.Job{Job: "hold until death", Store: s.server.URL, Name: name})
	h.Begin()
	var token uint64
	h.Next(&token)
	time.Sleep(rand.N(killedTTL / 2)) // so that it dies at some time during its lease
	h.Kill()
	lease := acquireWith(t, rival, name, nil)
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	return time.Duration(lease.Token()-token) * time.Microsecond
}
