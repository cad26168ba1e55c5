package httplock_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// A sharded store has a part for each first letter of names. The part of names with b can hang.
type sharded struct {
	*mem.Engine
	mu      sync.Mutex
	hangs   bool       // the part of names that begin with b hangs
	batches [][]string // batches of names that the store has received
}

func (s *sharded) Capabilities() driver.Capabilities {
	c := s.Engine.Capabilities()
	c.Routes = true
	return c
}

func (s *sharded) Route(name string) uint32 { return uint32(name[0]) }

// asked records a batch, and hangs if the part of the names with b hangs and has a name in it.
func (s *sharded) asked(ctx context.Context, names []string) error {
	s.mu.Lock()
	hangs := s.hangs && slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "b") })
	s.batches = append(s.batches, names)
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (s *sharded) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	var names []string
	for _, r := range reqs {
		names = append(names, r.Name)
	}
	if err := s.asked(ctx, names); err != nil {
		return slices.Repeat([]error{err}, len(reqs))
	}
	return s.Engine.Extend(ctx, reqs)
}

func (s *sharded) Refresh(ctx context.Context, reqs []driver.RefreshRequest) []driver.RefreshReply {
	var names []string
	for _, r := range reqs {
		names = append(names, r.Name)
	}
	if err := s.asked(ctx, names); err != nil {
		return slices.Repeat([]driver.RefreshReply{{Err: err}}, len(reqs))
	}
	return s.Engine.Refresh(ctx, reqs)
}

// TestHungShard checks that a part of the store that hangs delays the results of other parts by 100
// ms. Only the outcome of the requests to the hung part is unknown.
func TestHungShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sharded{Engine: mem.New(nil)}
		_, e := served(t, store)
		var extends []driver.ExtendRequest
		var refreshes []driver.RefreshRequest
		for _, name := range []string{"a1", "b1", "a2", "b2"} {
			req := drivertest.Request(name, time.Minute)
			drivertest.Granted(t, store, req) // the store grants, so e does not learn the routes
			waits, _ := drivertest.Queued(t, store, name, time.Minute)
			extends = append(extends, driver.ExtendRequest{Name: name, LeaseID: req.LeaseID, TTL: time.Hour})
			refreshes = append(refreshes, driver.RefreshRequest{Name: name, LeaseID: waits.LeaseID, WaiterTTL: time.Hour})
		}
		store.hangs = true
		began := time.Now()
		for i, err := range e.Extend(t.Context(), extends) {
			checkPart(t, "extend", extends[i].Name, err)
		}
		for i, reply := range e.Refresh(t.Context(), refreshes) {
			checkPart(t, "refresh", refreshes[i].Name, reply.Err)
		}
		if took := time.Since(began); took != 200*time.Millisecond {
			t.Errorf("two batches took %s, want 100 ms each", took)
		}
		if e.Route("a1") != e.Route("a2") || e.Route("b1") != e.Route("b2") || e.Route("a1") == e.Route("b1") {
			t.Error("the engine does not know what it was told of the routes")
		}
	})
}

func checkPart(t *testing.T, what, name string, err error) {
	t.Helper()
	switch hung := name[0] == 'b'; {
	case hung && (err == nil || driver.Definite(err)):
		t.Errorf("%s of %s, whose part hangs: %v", what, name, err)
	case !hung && err != nil:
		t.Errorf("%s of %s, whose part answers: %v", what, name, err)
	}
}

// TestRoutesAreLearned checks that an engine knows the route of each lock that it has acquired.
// Unknown names share one route.
func TestRoutesAreLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sharded{Engine: mem.New(nil)}
		_, e := served(t, store)
		for _, name := range []string{"a", "b", "a again"} {
			drivertest.Granted(t, e, drivertest.Request(name, time.Minute))
		}
		if e.Route("a") != e.Route("a again") || e.Route("a") == e.Route("b") {
			t.Errorf("routes %d, %d, %d", e.Route("a"), e.Route("a again"), e.Route("b"))
		}
		if e.Route("never asked for") != e.Route("nor this") {
			t.Error("names of which nothing is known have several routes")
		}
	})
}
