package sqlitelock

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// A host has clocks that a test moves.
type host struct {
	bootID string
	mu     sync.Mutex // guards the rest
	boot   time.Duration
	wall   time.Time
	reads  int // of boot
	fault  error
}

func newHost(bootID string) *host {
	return &host{bootID: bootID, boot: time.Hour, wall: time.Now()}
}

func (h *host) clock() clock {
	return clock{
		bootID: h.bootID,
		boot: func() (time.Duration, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.reads++
			return h.boot, h.fault
		},
		wall: func() time.Time {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.wall
		},
	}
}

// pass advances the boot-time clock by d, and the wall clock by step.
func (h *host) pass(d, step time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.boot, h.wall = h.boot+d, h.wall.Add(step)
}

func (h *host) open(t testing.TB, path string) *Engine {
	t.Helper()
	s := newSetting(h.clock())
	s.added = sweepEvery - 1 // the engine sweeps with its first row
	e, err := s.open(t.Context(), path)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// openOn returns an engine on a new database, with the clocks of h.
func openOn(t testing.TB, h *host) *Engine {
	t.Helper()
	return h.open(t, filepath.Join(t.TempDir(), "locks.db"))
}

// TestBootClockDecides checks that a lease expires by the boot-time clock, to the nanosecond.
func TestBootClockDecides(t *testing.T) {
	h := newHost("boot")
	e := openOn(t, h)
	req := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, req)
	h.pass(time.Minute-1, 0)
	if left := drivertest.Held(t, e, drivertest.Request("t", time.Minute)).ExpiresIn; left != 1 {
		t.Errorf("expires in %s, want 1ns", left)
	}
	h.pass(1, 0)
	wantIs(t, "extend at the expiry", e.Extend(t.Context(), []driver.ExtendRequest{{Name: "t", LeaseID: req.LeaseID, TTL: time.Hour}})[0], driver.ErrLost)
	wantIs(t, "release at the expiry", e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID}), driver.ErrLost)
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
}

// TestWallClockSteps checks that a step of the wall clock neither ends a lease nor makes a token
// smaller.
func TestWallClockSteps(t *testing.T) {
	h := newHost("boot")
	e := openOn(t, h)
	req := drivertest.Request("t", time.Minute)
	last := drivertest.Granted(t, e, req)
	for _, step := range []time.Duration{2 * time.Hour, -1000 * time.Hour, 2000 * time.Hour, -1000000 * time.Hour} {
		h.pass(0, step)
		if left := drivertest.Held(t, e, drivertest.Request("t", time.Minute)).ExpiresIn; left != time.Minute {
			t.Errorf("after a step of %s the lease ends in %s, want a minute", step, left)
		}
		drivertest.Release(t, e, req)
		req = drivertest.Request("t", time.Minute)
		token := drivertest.Granted(t, e, req)
		if token <= last {
			t.Errorf("after a step of %s the token is %d, want more than %d", step, token, last)
		}
		last = token
	}
}

// TestReboot checks that a reboot ends all leases, tombstones, closed names and places at once,
// whatever the new boot's clock shows, and that tokens continue to grow.
func TestReboot(t *testing.T) {
	h := newHost("one boot")
	path := filepath.Join(t.TempDir(), "locks.db")
	e := h.open(t, path)
	old, closed, cancelled := drivertest.Request("t", time.Hour), drivertest.Request("closed", time.Hour), drivertest.Request("t", time.Hour)
	last := drivertest.Granted(t, e, old)
	drivertest.Granted(t, e, closed)
	if err := e.Release(t.Context(), driver.ReleaseRequest{Name: "closed", LeaseID: closed.LeaseID, KeepFor: time.Hour}); err != nil {
		t.Fatal(err)
	}
	_ = e.Release(t.Context(), driver.ReleaseRequest{Name: "x", LeaseID: cancelled.LeaseID, Cancel: true})
	waiter := inQueue(drivertest.Request("t", time.Hour), time.Hour)
	placed(t, e, waiter, 1)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}

	h = newHost("another boot")
	h.boot = time.Second // far from the old leases' expiry
	e = h.open(t, path)
	for lock, err := range e.List(t.Context(), "") {
		t.Errorf("listed after the reboot: %+v, %v", lock, err)
	}
	lock, err := e.Inspect(t.Context(), "t")
	if err != nil || len(lock.Holders) != 0 || lock.QueueLength != 0 || lock.LastToken != last {
		t.Errorf("inspect after the reboot: %+v, %v; want no holder, no place and the last token %d", lock, err, last)
	}
	wantIs(t, "extend", e.Extend(t.Context(), []driver.ExtendRequest{{Name: "t", LeaseID: old.LeaseID, TTL: time.Hour}})[0], driver.ErrLost)
	wantIs(t, "refresh", refresh(t, e, waiter).Err, driver.ErrLost)
	wantIs(t, "release", e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: old.LeaseID}), driver.ErrLost)
	if token := drivertest.Granted(t, e, cancelled); token <= last {
		t.Errorf("token %d after the reboot, want more than %d", token, last)
	}
	drivertest.Granted(t, e, drivertest.Request("closed", time.Minute))
}

func TestBrokenClock(t *testing.T) {
	h := newHost("boot")
	e := openOn(t, h)
	h.mu.Lock()
	h.fault = errors.New("no clock")
	h.mu.Unlock()
	_, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
	wantIs(t, "acquire", err, driver.ErrUnavailable)
	_, err = e.Inspect(t.Context(), "t")
	wantIs(t, "inspect", err, driver.ErrUnavailable)
	h.mu.Lock()
	h.fault = nil
	h.mu.Unlock()
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute)) // no transaction was left open
}

// TestSystemClock checks that the engines of one host read the same clock.
func TestSystemClock(t *testing.T) {
	a, err := systemClock()
	if err != nil {
		t.Fatal(err)
	}
	b, err := systemClock()
	if err != nil {
		t.Fatal(err)
	}
	first, err := a.now()
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.now()
	if err != nil {
		t.Fatal(err)
	}
	if a.bootID != b.bootID || len(a.bootID) != 36 {
		t.Errorf("boot IDs %q and %q", a.bootID, b.bootID)
	}
	if d := time.Duration(second.boot - first.boot); d < 0 || d > drivertest.Patience {
		t.Errorf("%s between two readings", d)
	}
}
