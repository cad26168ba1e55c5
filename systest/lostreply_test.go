package systest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/systest/report"
)

// cleanBound is how soon after a failed acquire its key must be gone. A loaded machine may
// sometimes exceed cleanBound, but never hardBound.
const (
	cleanBound = 100 * time.Millisecond
	hardBound  = 2 * time.Second
)

// cleanups records how long the keys of failed acquires stayed.
type cleanups struct {
	mu   sync.Mutex // guards took
	took []time.Duration
}

// wait returns when the key is gone, and fails the test if it stays.
func (c *cleanups) wait(t *testing.T, s *store, name string) {
	t.Helper()
	began := time.Now()
	if !within(hardBound, func() bool { return !s.held(t, name) }) {
		t.Errorf("%q is held by nobody, %s after the acquire failed: %+v", name, hardBound, s.holding(t, name))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, time.Since(began))
}

// check fails the test if the median exceeds the bound. The slowest cleanups depend on the load of
// the machine.
func (c *cleanups) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.took)
	p99 := c.took[(len(c.took)-1)*99/100]
	report.Row(t, "the reply to an acquire is lost, and the caller gives up", "the key is gone within 100 ms",
		"%d keys: gone after %s in 99 %%, %s at worst", len(c.took), p99, c.took[len(c.took)-1])
	if middle := c.took[len(c.took)/2]; middle > cleanBound {
		t.Errorf("keys of failed acquires stay for %s, want less than %s", middle, cleanBound)
	}
}

// loss loses the reply to the first acquire on the link, and calls lost when the store has executed
// the request.
func loss(l *link, fate faultproxy.Fate, lost func()) {
	var once sync.Once
	l.on(acquire, func(faultproxy.Request) (action faultproxy.Action) {
		once.Do(func() { action = faultproxy.Action{Reply: fate, Answered: lost} })
		return action
	})
}

func fateName(fate faultproxy.Fate) string {
	if fate == faultproxy.Swallow {
		return "swallowed"
	}
	return "reset"
}

// TestLostReplyLeavesNoKeyWhenTheCallerGivesUp checks that no key stays if the caller gives up at
// the instant at which the reply is lost. INVARIANT I5.
func TestLostReplyLeavesNoKeyWhenTheCallerGivesUp(t *testing.T) {
	s := newStore(t)
	var cleaned cleanups
	for _, fate := range []faultproxy.Fate{faultproxy.Swallow, faultproxy.Reset} {
		l := s.link(t)
		client := l.client(t, nil)
		for i := range 50 {
			name := fmt.Sprintf("lost/%s/%d", fateName(fate), i)
			ctx, cancel := context.WithCancel(t.Context())
			var granted atomic.Bool
			loss(l, fate, func() {
				granted.Store(s.held(t, name))
				cancel()
			})
			_, err := client.Acquire(ctx, name, nil)
			if err == nil {
				t.Fatal("acquired without the reply")
			}
			if !granted.Load() {
				t.Fatalf("%s: the store granted nothing, so nothing was tested: %v", name, err)
			}
			cleaned.wait(t, s, name)
			l.Drop() // because a swallowed reply blocks the connection
		}
	}
	cleaned.check(t)
}

// TestLostReplyIsHealedByARepeat checks that the client repeats the request on a new connection and
// gets the token of the lost reply. INVARIANT I6.
func TestLostReplyIsHealedByARepeat(t *testing.T) {
	s := newStore(t)
	for _, fate := range []faultproxy.Fate{faultproxy.Swallow, faultproxy.Reset} {
		l := s.link(t)
		client := l.client(t, nil)
		for i := range 50 {
			name := fmt.Sprintf("repeat/%s/%d", fateName(fate), i)
			first := make(chan lockinfo.Holding, 1)
			loss(l, fate, func() {
				first <- s.holding(t, name)
				if fate == faultproxy.Swallow {
					time.AfterFunc(5*time.Millisecond, l.Drop)
				}
			})
			lease, err := client.TryAcquire(t.Context(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkRepeat(t, lease, <-first, s.holding(t, name))
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.held(t, name) {
				t.Fatalf("%s is held after its release", name)
			}
		}
	}
}

// checkRepeat compares what the store granted first, what the client got by its repeat, and what
// the store has now.
func checkRepeat(t *testing.T, lease *holdfast.Lease, first, now lockinfo.Holding) {
	t.Helper()
	if first.Token == 0 || first.LeaseID != lease.ID() {
		t.Errorf("%s: the lost reply granted %+v, the lease is %s", lease.Name(), first, lease.ID())
	}
	if lease.Token() != first.Token || now.Token != first.Token {
		t.Errorf("%s: token %d at first, %d by the repeat, %d in the store", lease.Name(), first.Token, lease.Token(), now.Token)
	}
}

// TestRepeatedRequestGetsTheSameToken checks the same at the level of the driver: the test itself
// repeats the request.
func TestRepeatedRequestGetsTheSameToken(t *testing.T) {
	s := newStore(t)
	l := s.link(t)
	for i := range 20 {
		req := request(fmt.Sprintf("same-token/%d", i))
		loss(l, faultproxy.Reset, func() {})
		if _, err := l.engine.Acquire(t.Context(), req); err == nil {
			t.Fatal("acquired without the reply")
		}
		want := s.holding(t, req.Name)
		for range 2 {
			reply, err := l.engine.Acquire(t.Context(), req)
			if err != nil || reply.Outcome != driver.Granted || reply.Token != want.Token || want.Token == 0 {
				t.Fatalf("the repeat got %+v, %v; the store has %+v", reply, err, want)
			}
		}
	}
}
