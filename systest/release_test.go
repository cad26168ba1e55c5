package systest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// A trafficLog records the renewals and the release of one lease, in the order in which a proxy saw
// them.
type trafficLog struct {
	mu         sync.Mutex // guards the rest
	unanswered int        // renewals that the store has not executed yet
	released   bool
	last       time.Time // when the last renewal passed
	violations int       // renewals after the release, or overtaken by it
}

func (g *trafficLog) note(o op) (answered func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch o {
	case extend:
		g.unanswered++
		g.last = time.Now()
		if g.released {
			g.violations++
		}
		return func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.unanswered--
		}
	case release:
		g.released = true
		g.violations += g.unanswered
	}
	return nil
}

// TestReleaseRacingARenewal checks that no renewal follows the release, whether the renewal is of
// the keep-alive or of the caller's Extend (INVARIANT I9), and that no lease is held again
// (INVARIANT I4).
func TestReleaseRacingARenewal(t *testing.T) {
	s := newStore(t)
	const workers = 16
	each := soak.Count(25, 10000/workers)
	var all sync.WaitGroup
	var mu sync.Mutex
	met, violations := 0, 0
	for w := range workers {
		l := s.link(t)
		client := l.client(t, nil)
		all.Go(func() {
			for i := range each {
				name := fmt.Sprintf("race/%d/%d", w, i)
				near, bad := raceRelease(t, l, client, name)
				mu.Lock()
				violations += bad
				if near {
					met++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if violations > 0 {
		t.Errorf("%d renewals went out after the release, or were under way when it did", violations)
	}
	if met < workers*each/4 {
		t.Errorf("only %d of %d releases met a renewal: this test proves nothing", met, workers*each)
	}
	resurrected := 0
	for w := range workers {
		for i := range each {
			if name := fmt.Sprintf("race/%d/%d", w, i); s.held(t, name) {
				resurrected++
				t.Errorf("%s is held after its release", name)
			}
		}
	}
	report.Row(t, "release racing a renewal", "0 resurrected leases",
		"%d releases, %d of them within 5 ms of a renewal; %d renewals after a release or overtaken by it; %d leases resurrected",
		workers*each, met, violations, resurrected)
}

// raceRelease releases a lease about when its first renewal is due. It reports whether a renewal
// was near, and how many came after the release.
func raceRelease(t *testing.T, l *link, client *holdfast.Client, name string) (near bool, violations int) {
	const ttl = 240 * time.Millisecond // the first renewal is due after a third
	l.OnRequest(nil)
	lease, err := client.TryAcquire(t.Context(), name, &holdfast.AcquireOptions{TTL: ttl})
	if err != nil {
		t.Error(err)
		return false, 0
	}
	var traffic trafficLog
	l.OnRequest(func(r faultproxy.Request) faultproxy.Action {
		action := faultproxy.Delay(rand.N(3*time.Millisecond), rand.N(3*time.Millisecond))
		if r.Has(string(lease.ID())) {
			action.Answered = traffic.note(l.store.opOf(r))
		}
		return action
	})
	due := lease.Deadline().Add(-ttl * 2 / 3)
	extended := make(chan struct{})
	time.AfterFunc(time.Until(due)+rand.N(6*time.Millisecond), func() {
		defer close(extended)
		_ = lease.Extend(context.Background(), ttl) // fails if the release was first
	})
	time.Sleep(time.Until(due) + rand.N(8*time.Millisecond)) // the race under test
	began := time.Now()
	err = lease.Release(t.Context())
	<-extended
	if errors.Is(err, holdfast.ErrLost) {
		return false, 0 // lost before, on a busy machine: its renewal was not answered in time
	}

	traffic.mu.Lock()
	defer traffic.mu.Unlock()
	return !traffic.last.IsZero() && began.Sub(traffic.last).Abs() < 5*time.Millisecond, traffic.violations
}
