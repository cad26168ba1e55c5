package systest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/systest/report"
)

// TestHalfOpenConnectionsLoseNoLease simulates a firewall or NAT that lost its state: it silently
// drops packets of existing connections, and lets new connections through. No lease of three
// seconds or more is lost, and no caller waits for the old connections to time out. INVARIANT I9.
func TestHalfOpenConnectionsLoseNoLease(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{3 * time.Second, 6 * time.Second} {
		t.Run(ttl.String(), func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			l := s.link(t)
			client := l.client(t, &holdfast.Options{TTL: ttl, RequestTimeout: ttl})
			var leases []*holdfast.Lease
			for i := range 6 {
				lease, err := client.TryAcquire(t.Context(), fmt.Sprintf("held/%d", i), nil)
				if err != nil {
					t.Fatal(err)
				}
				leases = append(leases, lease)
			}
			other, waiter := heldByAnother(t, s, client, ttl)

			l.BlackHoleConns()
			time.Sleep(ttl * 6 / 5) // longer than the leases had left
			for _, lease := range leases {
				if !lease.Valid() {
					t.Errorf("%s was lost: %v", lease.Name(), context.Cause(lease.Context()))
				}
			}

			l.BlackHoleConns() // so that notices of the release are lost
			if err := other.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			released := time.Now()
			for _, lease := range leases {
				if err := lease.Release(t.Context()); err != nil {
					t.Errorf("release of %s: %v", lease.Name(), err)
				}
			}
			releases := time.Since(released)
			if err := <-waiter; err != nil {
				t.Errorf("the waiter: %v", err)
			}
			report.Row(t, fmt.Sprintf("the connections that there are go silent, new ones are fine, TTL %s", ttl), "no lease lost, releases and waiters go on",
				"%d leases, none lost; %d releases took %s in all, the waiter had its turn %s after the release",
				len(leases), len(leases), releases.Round(time.Millisecond), time.Since(released).Round(time.Millisecond))
		})
	}
}

// heldByAnother makes client wait for a name that another client holds on a network without faults.
// The channel gets the waiter's error.
func heldByAnother(t *testing.T, s *store, client *holdfast.Client, ttl time.Duration) (*holdfast.Lease, <-chan error) {
	t.Helper()
	other, err := newClient(t, s.engine, &holdfast.Options{TTL: ttl}).TryAcquire(t.Context(), "contended", nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		lease, err := client.Acquire(ctx, "contended", nil)
		if err == nil {
			err = lease.Release(ctx)
		}
		done <- err
	}()
	eventually(t, "the waiter has a place", func() bool {
		lock, err := s.engine.Inspect(t.Context(), "contended")
		return err == nil && lock.QueueLength == 1
	})
	return other, done
}
