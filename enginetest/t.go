package enginetest

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A T is one requirement's run against one engine. Methods that acquire or end leases end the run
// if the engine does not reply as expected.
type T struct {
	testing.TB
	Engine   driver.Engine
	Features driver.Features // the engine's; empty if its capabilities are wrong
	Unit     time.Duration   // the harness's
	harness  Harness
}

func newT(tb testing.TB, h Harness) *T { return tOn(tb, h, h.Open(tb)) }

// tOn returns a T for e, which it closes when tb ends.
func tOn(tb testing.TB, h Harness, e driver.Engine) *T {
	closeAtEnd(tb, e)
	features, _ := driver.FeaturesOf(e) // ImplementsCapabilities reports the error
	return &T{TB: tb, Engine: e, Features: features, Unit: h.Unit, harness: h}
}

// closeAtEnd closes e when tb ends. e may have been closed before.
func closeAtEnd(tb testing.TB, e driver.Engine) {
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
}

// join returns a T for another engine on the same store. The harness must have Join.
func (t *T) join() *T {
	t.Helper()
	return tOn(t.TB, t.harness, t.harness.Join(t.TB, t.Engine))
}

// another returns a T for another engine on the store if there can be one, and otherwise t.
func (t *T) another() *T {
	t.Helper()
	if hasJoin(t) {
		return t.join()
	}
	return t
}

// units returns n units of time.
func (t *T) units(n int) time.Duration { return time.Duration(n) * t.Unit }

// slack returns the tolerance of a measured remaining time, for the store's rounding and the
// transit of the reply.
func (t *T) slack() time.Duration { return t.Unit / 2 }

// early is how much before its TTL a lease may seem to end by another clock than the store's,
// because the store truncates times to milliseconds.
const early = 2 * time.Millisecond

// A lease is a granted request, with its token and its times.
type lease struct {
	driver.AcquireRequest
	token    uint64
	sent     time.Time // before the request was sent
	answered time.Time
}

// ask returns a request with a new lease ID.
func ask(name string, ttl time.Duration) driver.AcquireRequest {
	return driver.AcquireRequest{Name: name, LeaseID: lockinfo.NewLeaseID(), TTL: ttl}
}

// acquire makes one attempt that must not fail.
func (t *T) acquire(req driver.AcquireRequest) driver.AcquireReply {
	t.Helper()
	reply, err := t.Engine.Acquire(t.Context(), req)
	t.must("Acquire", req.Name, err)
	return reply
}

// grant makes one attempt that must be granted.
func (t *T) grant(req driver.AcquireRequest) lease {
	t.Helper()
	sent := time.Now()
	reply := t.acquire(req)
	t.need(reply.Outcome == driver.Granted, "Acquire(%q): %s, want a grant", req.Name, outcome(reply))
	return lease{AcquireRequest: req, token: reply.Token, sent: sent, answered: time.Now()}
}

// take makes one attempt with a new lease ID that must be granted.
func (t *T) take(name string, ttl time.Duration) lease {
	t.Helper()
	return t.grant(ask(name, ttl))
}

// refused makes one attempt with a new lease ID that must be refused.
func (t *T) refused(name string) driver.Blocker {
	t.Helper()
	return t.refuse(ask(name, t.units(1)))
}

// refuse makes one attempt that must be refused.
func (t *T) refuse(req driver.AcquireRequest) driver.Blocker {
	t.Helper()
	reply := t.acquire(req)
	t.need(reply.Outcome == driver.Held, "Acquire(%q): %s, want held", req.Name, outcome(reply))
	return reply.Blocker
}

// eventually repeats an attempt until it is granted. It ends the run if that takes longer than
// limit.
func (t *T) eventually(req driver.AcquireRequest, limit time.Duration) lease {
	t.Helper()
	for start := time.Now(); ; time.Sleep(t.Unit / 10) {
		sent := time.Now()
		if reply := t.acquire(req); reply.Outcome == driver.Granted {
			return lease{AcquireRequest: req, token: reply.Token, sent: sent, answered: time.Now()}
		}
		t.need(time.Since(start) <= limit, "Acquire(%q): no grant for %s", req.Name, limit)
	}
}

// extend extends one lease and returns the engine's error.
func (t *T) extend(l lease, ttl time.Duration) error {
	t.Helper()
	return t.extends([]driver.ExtendRequest{{Name: l.Name, LeaseID: l.LeaseID, TTL: ttl}})[0]
}

// extends calls Extend once, and returns one error per request.
func (t *T) extends(reqs []driver.ExtendRequest) []error {
	t.Helper()
	errs := t.Engine.Extend(t.Context(), reqs)
	t.need(len(errs) == len(reqs), "Extend: %d answers to %d requests", len(errs), len(reqs))
	return errs
}

// mustExtend extends one lease, which must succeed.
func (t *T) mustExtend(l lease, ttl time.Duration) {
	t.Helper()
	t.must("Extend", l.Name, t.extend(l, ttl))
}

// end releases one lease with the options of req, and returns the engine's error.
func (t *T) end(l lease, req driver.ReleaseRequest) error {
	req.Name, req.LeaseID = l.Name, l.LeaseID
	return t.Engine.Release(t.Context(), req)
}

// release releases one lease and returns the engine's error.
func (t *T) release(l lease) error { return t.end(l, driver.ReleaseRequest{}) }

// mustRelease releases one lease, which must succeed.
func (t *T) mustRelease(l lease) {
	t.Helper()
	t.must("Release", l.Name, t.release(l))
}

// cancel cancels the lease ID of req and returns the engine's error.
func (t *T) cancel(req driver.AcquireRequest) error {
	return t.end(lease{AcquireRequest: req}, driver.ReleaseRequest{Cancel: true})
}

// mustCancel cancels req, which may have no lease.
func (t *T) mustCancel(req driver.AcquireRequest) {
	t.Helper()
	t.mayBeLost("Cancel", req.Name, t.cancel(req))
}

// inspect inspects a name.
func (t *T) inspect(name string) lockinfo.LockState {
	t.Helper()
	lock, err := t.Engine.Inspect(t.Context(), name)
	t.must("Inspect", name, err)
	return lock
}

// holding returns the store's description of l's lease, if it is live.
func (t *T) holding(l lease) (lockinfo.Holding, bool) {
	t.Helper()
	for _, h := range t.inspect(l.Name).Holders {
		if h.LeaseID == l.LeaseID && !h.Released {
			return h, true
		}
	}
	return lockinfo.Holding{}, false
}

// mustHold fails the run unless l's lease is live, and returns the store's description of it.
func (t *T) mustHold(l lease) lockinfo.Holding {
	t.Helper()
	h, ok := t.holding(l)
	t.need(ok, "the lease of %q is gone", l.Name)
	return h
}

// live fails the run unless l's lease is live, and returns how long it lasts.
func (t *T) live(l lease) time.Duration {
	t.Helper()
	return t.mustHold(l).ExpiresIn
}

// free fails the run unless name has no lease.
func (t *T) free(name string) {
	t.Helper()
	n := len(t.inspect(name).Holders)
	t.need(n == 0, "%q has %d leases, want none", name, n)
}

// outcome describes a reply for a failure message.
func outcome(r driver.AcquireReply) string {
	return [...]string{"held", "granted", "cancelled", "recorded", "spent", "repeated"}[r.Outcome]
}
