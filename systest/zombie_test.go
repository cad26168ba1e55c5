package systest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/systest/report"
)

// A zombie is an acquire that is delayed on the network until after its own cancel.
type zombie struct {
	link *link
	name string
	// before runs after the cancel was answered and before the acquire reaches the store.
	before func()
}

// run returns whether the acquire left a key without a holder.
func (z zombie) run(t *testing.T) (orphan bool) {
	t.Helper()
	client, err := holdfast.New(z.link.engine, &holdfast.Options{SharedEngine: true})
	if err != nil {
		t.Error(err)
		return false
	}
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	wire, answered := make(chan struct{}), make(chan struct{})
	z.link.on(acquire, func(faultproxy.Request) faultproxy.Action {
		giveUp()
		action := faultproxy.Zombie(wire)
		action.Answered = func() { close(answered) }
		return action
	})
	if _, err := client.Acquire(ctx, z.name, nil); err == nil {
		t.Error("acquired without the reply")
	}
	closeClient(t, client) // returns after the cancel was answered
	if z.link.store.held(t, z.name) {
		t.Errorf("%s: the acquire was not held up", z.name)
	}
	z.before()
	close(wire)
	select {
	case <-answered:
	case <-time.After(patience):
		t.Errorf("%s: the zombie did not reach the store", z.name)
	}
	return z.link.store.held(t, z.name)
}

// zombies runs many zombies, parallel of them at a time, and returns how many left a key.
func zombies(t *testing.T, s *store, parallel, each int, before func(name string)) int {
	t.Helper()
	var orphans atomic.Int64
	var all sync.WaitGroup
	for w := range parallel {
		l := s.link(t)
		all.Go(func() {
			for i := range each {
				name := fmt.Sprintf("zombie/%d/%d", w, i)
				if (zombie{l, name, func() { before(name) }}).run(t) {
					orphans.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(orphans.Load())
}

// TestZombieAcquireLeavesNoOrphan checks that an acquire that arrives after its own cancel grants
// nothing. INVARIANT I5.
func TestZombieAcquireLeavesNoOrphan(t *testing.T) {
	s := newStore(t)
	const parallel, each = 50, 20
	orphans := zombies(t, s, parallel, each, func(string) {})
	report.Row(t, "zombie acquires: held on the wire until after their own cancel", "0 orphans", "%d zombies, %d orphans", parallel*each, orphans)
	if orphans > 0 {
		t.Errorf("%d of %d acquires that came after their cancel left a key held by nobody", orphans, parallel*each)
	}
}

// TestZombieWithoutTombstoneLeavesAnOrphan checks that TestZombieAcquireLeavesNoOrphan would detect
// a key without a holder: without the tombstones, each zombie leaves one.
func TestZombieWithoutTombstoneLeavesAnOrphan(t *testing.T) {
	s := newStore(t)
	const parallel, each = 5, 4
	orphans := zombies(t, s, parallel, each, func(name string) {
		keys, err := s.do(t, "KEYS", "holdfast:{"+name+"}:cancelled:*").AsStrSlice()
		if err != nil || len(keys) != 1 {
			t.Errorf("%s: tombstones %v, %v; want one", name, keys, err)
			return
		}
		s.do(t, "DEL", keys[0])
	})
	t.Logf("%d zombies without a tombstone, %d orphans", parallel*each, orphans)
	if orphans != parallel*each {
		t.Errorf("%d orphans, want %d: the zombies prove nothing", orphans, parallel*each)
	}
}

// TestZombieAfterReleaseLeavesNoOrphan checks a client that repeats its request and is granted the
// lock while the first copy is still under way. The first copy must not take the lock again after
// the release.
func TestZombieAfterReleaseLeavesNoOrphan(t *testing.T) {
	s := newStore(t)
	l := s.link(t)
	client := l.client(t, nil)
	for i := range 50 {
		name := fmt.Sprintf("insist/%d", i)
		wire, answered := make(chan struct{}), make(chan struct{})
		var once sync.Once
		l.on(acquire, func(faultproxy.Request) (action faultproxy.Action) {
			once.Do(func() {
				action = faultproxy.Zombie(wire)
				action.Answered = func() { close(answered) }
			})
			return action
		})
		lease, err := client.Acquire(t.Context(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(wire)
		select {
		case <-answered:
		case <-time.After(patience):
			t.Fatal("the zombie did not reach the store")
		}
		if s.held(t, name) {
			t.Fatalf("%s: the first copy of the request took the lock after the release", name)
		}
	}
}
