package systest

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// TestStoppedWaiter checks that a waiter whose process is stopped at its turn delays the others by
// its waiter TTL, once. When the process continues it does not use the lease that it was handed.
// INVARIANT I7.
func TestStoppedWaiter(t *testing.T) {
	const ttl = 800 * time.Millisecond // of leases and of places in the queue
	s := newStore(t)
	held := acquireWith(t, newClient(t, s.engine, nil), "a", nil)
	waiters := make([]*traffic.Crew, 2)
	for i := range waiters {
		waiters[i] = traffic.Start(t, traffic.Job{Job: "queue up", Store: s.server.URL, Name: "a", Workers: 1, TTL: ttl})
		waiters[i].Begin()
		s.awaitQueue(t, "a", i+1)
	}
	waiters[0].Stop()
	began := time.Now()
	giveBack(t, held)
	var second, first served
	waiters[1].Next(&second)
	took := second.At.Sub(began.Round(0))
	waiters[0].Cont()
	waiters[0].Next(&first)
	if first.Token <= second.Token {
		t.Errorf("the stopped waiter has token %d, who came before it %d", first.Token, second.Token)
	}
	report.Row(t, "SIGSTOP of the head of the queue", "the next is served within one waiter TTL", "served after %s, waiter TTL %s", took.Round(time.Millisecond), ttl)
	if took > ttl+250*time.Millisecond {
		t.Errorf("the next waiter was served after %s, want at most %s", took, ttl)
	}
}

// TestStoppedStore checks that holders learn of their loss at their deadlines while the store is
// stopped. After it continues, tokens grow and all locks can be acquired. INVARIANT I3.
func TestStoppedStore(t *testing.T) {
	s := newStore(t)
	client := newClient(t, s.engine, &holdfast.Options{TTL: keptTTL, RequestTimeout: keptTTL})
	leases := takeMany(t, client, "stopped store", 20)
	ended := make([]<-chan end, len(leases))
	for i, lease := range leases {
		ended[i] = watchEnd(lease)
	}
	s.server.Stop()
	latest := time.Duration(0)
	for i, lease := range leases {
		e := <-ended[i]
		latest = max(latest, e.at.Sub(lease.Deadline()))
		if !errors.Is(e.cause, holdfast.ErrLost) {
			t.Errorf("%s: cause %v, want ErrLost", lease.Name(), e.cause)
		}
	}
	s.server.Cont()
	began := time.Now()
	for _, lease := range leases {
		next := acquireWith(t, client, lease.Name(), nil)
		if next.Token() <= lease.Token() {
			t.Errorf("%s: token %d after %d", lease.Name(), next.Token(), lease.Token())
		}
		giveBack(t, next)
	}
	took := time.Since(began)
	report.Row(t, "SIGSTOP of the store for longer than the TTL", "every holder notified at its deadline; tokens strict; work goes on",
		"%d holders notified %s after their deadlines at most; all locks taken again within %s", len(leases), latest.Round(time.Microsecond), took.Round(time.Millisecond))
	if latest > 100*time.Millisecond {
		t.Errorf("a holder was notified %s after its deadline", latest)
	}
}
