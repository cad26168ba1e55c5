package systest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

const keptTTL = 1200 * time.Millisecond

// keptOptions returns options for a lease that the client renews.
func keptOptions() *holdfast.AcquireOptions { return &holdfast.AcquireOptions{TTL: keptTTL} }

// roundTrip delays every request and reply on a link, by d in all.
func roundTrip(l *link, d time.Duration) {
	l.OnRequest(func(faultproxy.Request) faultproxy.Action { return faultproxy.Delay(d/2, d-d/2) })
}

// take acquires a lock over a network without faults.
func take(t *testing.T, client *holdfast.Client, name string) *holdfast.Lease {
	t.Helper()
	lease, err := client.TryAcquire(t.Context(), name, keptOptions())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// TestLeaseSurvivesABlip checks that a fault that ends before the deadline costs no lease.
// INVARIANT I9.
func TestLeaseSurvivesABlip(t *testing.T) {
	const blip = keptTTL / 2
	blips := map[string]func(l *link){
		"cut":             func(l *link) { l.Cut(); time.AfterFunc(blip, l.Heal) },
		"black hole":      func(l *link) { l.BlackHole(); time.AfterFunc(blip, l.Heal) },
		"drop":            func(l *link) { l.Drop() },
		"latency 0.4 TTL": func(l *link) { roundTrip(l, keptTTL*4/10) },
	}
	s := newStore(t)
	for name, begin := range blips {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := s.link(t)
			lease := take(t, l.client(t, nil), name)
			ended := watchEnd(lease)
			// Two blips, with a renewal between them.
			for range 2 {
				deadline := lease.Deadline()
				begin(l)
				eventually(t, "a renewal after the blip", func() bool {
					return lease.Context().Err() != nil || lease.Deadline().Sub(deadline) > blip
				})
			}
			select {
			case e := <-ended:
				t.Fatalf("the lease ended: %v", e.cause)
			default:
			}
			if got := s.holding(t, name); got.Token != lease.Token() || !lease.Valid() {
				t.Errorf("the store has %+v, the lease has token %d, valid %t", got, lease.Token(), lease.Valid())
			}
		})
	}
}

// An end is when a lease's context ended, and why.
type end struct {
	at    time.Time
	cause error
}

// watchEnd returns a channel that receives the end of the lease's context.
func watchEnd(lease *holdfast.Lease) <-chan end {
	ended := make(chan end, 1)
	context.AfterFunc(lease.Context(), func() {
		ended <- end{time.Now(), context.Cause(lease.Context())}
	})
	return ended
}

// TestHolderKnowsBeforeTheRivalHolds checks that a lasting fault ends the lease with ErrLost by its
// deadline, and that a rival acquires the lock only after that. INVARIANT I3, INVARIANT I1.
func TestHolderKnowsBeforeTheRivalHolds(t *testing.T) {
	faults := map[string]func(*link){
		"cut":             func(l *link) { l.Cut() },
		"black hole":      func(l *link) { l.BlackHole() },
		"latency 1.2 TTL": func(l *link) { roundTrip(l, keptTTL*12/10) },
	}
	s := newStore(t)
	for name, begin := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The delay until the end of a context is seen is measured, so a busy machine may need
			// several attempts.
			const attempts = 3
			for range attempts {
				if late := loseTo(t, s, name, begin); late <= lateBound {
					return
				}
			}
			t.Errorf("the context never ended within %s of the deadline in %d attempts", lateBound, attempts)
		})
	}
}

// lateBound is how much later than the deadline the end of a context may be seen. It is less than
// the drift margin, so no rival holds the lock yet.
const lateBound = 10 * time.Millisecond

// loseTo makes a holder lose the lock to a rival and returns how much later
// than the deadline its context was seen to end.
func loseTo(t *testing.T, s *store, name string, begin func(*link)) (late time.Duration) {
	t.Helper()
	l := s.link(t)
	defer l.Heal()
	lease := take(t, l.client(t, nil), name)
	ended := watchEnd(lease)
	rival := newClient(t, s.engine, nil)
	begin(l)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	next, err := rival.Acquire(ctx, name, keptOptions())
	if err != nil {
		t.Fatalf("the rival waits in vain: %v", err)
	}
	// The store uses the clock of this machine, so a token that is not adjusted to an earlier token
	// is the time of the grant.
	granted := time.UnixMicro(int64(next.Token()))
	var e end
	select {
	case e = <-ended:
	case <-time.After(patience):
		t.Fatalf("the rival holds the lock, and the lease's context has not ended %s later", patience)
	}
	late = e.at.Sub(lease.Deadline())
	ahead := granted.Sub(e.at.Round(0))
	t.Logf("context ended %s after the deadline, %s before the rival's grant", late, ahead)
	if !errors.Is(e.cause, holdfast.ErrLost) {
		t.Errorf("cause %v, want ErrLost", e.cause)
	}
	if ahead < 0 && late <= lateBound {
		t.Errorf("the rival held the lock for %s before the holder knew", -ahead)
	}
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
	return late
}

// TestLatency checks slow networks. A latency of 0.4 TTL, for a request and its reply, costs no
// lease. With 1.2 TTL all leases are lost, and every holder learns that before the store ends the
// lease. INVARIANT I3, INVARIANT I9.
func TestLatency(t *testing.T) {
	s := newStore(t)
	count := soak.Count(10, 100)
	kept, told := 0, 0
	t.Run("0.4 TTL", func(t *testing.T) {
		l := s.link(t)
		leases := takeMany(t, l.client(t, nil), "kept", count)
		roundTrip(l, keptTTL*4/10)
		time.Sleep(3 * keptTTL) // on the slow network
		for _, lease := range leases {
			if lease.Valid() && s.holding(t, lease.Name()).Token == lease.Token() {
				kept++
			}
		}
		l.OnRequest(nil)
	})
	t.Run("1.2 TTL", func(t *testing.T) {
		l := s.link(t)
		leases := takeMany(t, l.client(t, nil), "lost", count)
		early := make(chan bool, count)
		for _, lease := range leases {
			context.AfterFunc(lease.Context(), func() {
				cause := context.Cause(lease.Context())
				early <- errors.Is(cause, holdfast.ErrLost) && s.held(t, lease.Name())
			})
		}
		roundTrip(l, keptTTL*12/10)
		for range leases {
			if <-early {
				told++
			}
		}
		l.OnRequest(nil)
	})
	report.Row(t, "latency of 0.4 and 1.2 × TTL", "kept; reported lost before the store's expiry, in 100 %",
		"0.4: %d of %d kept for 3 TTL; 1.2: %d of %d notified before the store's expiry", kept, count, told, count)
	if kept < count || told < count {
		t.Errorf("%d of %d leases were kept, %d of %d holders told in time", kept, count, told, count)
	}
}

// takeMany acquires count locks over a network without faults.
func takeMany(t *testing.T, client *holdfast.Client, prefix string, count int) []*holdfast.Lease {
	t.Helper()
	leases := make([]*holdfast.Lease, count)
	for i := range leases {
		leases[i] = take(t, client, fmt.Sprintf("%s/%d", prefix, i))
	}
	return leases
}

// TestNoLeaseFromAnAnswerAfterTheDeadline checks that a store whose every reply arrives after the
// deadline grants no lease, and that no key is left.
func TestNoLeaseFromAnAnswerAfterTheDeadline(t *testing.T) {
	s := newStore(t)
	l := s.link(t)
	const ttl = 200 * time.Millisecond
	client := l.client(t, &holdfast.Options{RequestTimeout: 3 * ttl})
	roundTrip(l, ttl*12/10)
	lease, err := client.TryAcquire(t.Context(), "slow", &holdfast.AcquireOptions{TTL: ttl})
	if err == nil {
		t.Fatalf("got a lease with %s left", lease.Remaining())
	}
	if !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	closeClient(t, client)
	if s.held(t, "slow") {
		t.Error("the key is held by nobody")
	}
}
