package enginetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func engineRequirements() []Requirement {
	return []Requirement{
		{"EndedContextDoesNothing", "", nil, endedContext,
			"a call whose context has ended must return soon, with an error, and change nothing"},
		{"ErrorsLeaveOutName", "I10", nil, errorsLeaveOutName,
			"an error must not contain the lock's name, which package holdfast adds"},
		{"ClosedEngineSaysSo", "", nil, closedEngine,
			"calls after Close must fail with ErrClosed, and a second Close must do nothing"},
		{"CloseLeavesLeases", "I4", hasJoin, closeLeavesLeases,
			"Close must not touch any lease"},
	}
}

// A call is one method of an engine, called on a lease.
type call struct {
	method string
	err    func(context.Context, *T, lease) error
}

// calls returns a call of every method that sends a request to the store.
func calls(t *T) []call {
	all := []call{
		{"Acquire", func(ctx context.Context, t *T, l lease) error {
			return errOf(t.Engine.Acquire(ctx, ask("another", l.TTL)))
		}},
		{"Extend", func(ctx context.Context, t *T, l lease) error {
			req := driver.ExtendRequest{Name: l.Name, LeaseID: l.LeaseID, TTL: 4 * l.TTL}
			errs := t.Engine.Extend(ctx, []driver.ExtendRequest{req, req})
			t.need(len(errs) == 2, "Extend of 2 leases: %d answers", len(errs))
			return errOfBoth(errs[0], errs[1])
		}},
		{"Release", func(ctx context.Context, t *T, l lease) error {
			return t.Engine.Release(ctx, driver.ReleaseRequest{Name: l.Name, LeaseID: l.LeaseID})
		}},
		{"Inspect", func(ctx context.Context, t *T, l lease) error {
			return errOf(t.Engine.Inspect(ctx, l.Name))
		}},
	}
	f := t.Features
	if f.Vault != nil && !canVault(t) {
		f.Vault = nil
	}
	return append(all, optionalCalls(t, f)...)
}

func endedContext(t *T) {
	if canRecord(t) {
		t.done("a", "result")
	}
	var d deposited
	if canVault(t) {
		d = t.store("a", t.units(40))
	}
	l := t.take("a", t.units(40))
	for _, c := range calls(t) {
		start := time.Now()
		err := c.err(t.endedContext(), t, l)
		t.want(err != nil && !errors.Is(err, driver.ErrLost), "%s with an ended context: error %v", c.method, err)
		took := time.Since(start)
		t.want(took <= t.units(4), "%s with an ended context took %s", c.method, took)
	}
	t.atMost("a lease, after Extend with an ended context,", t.live(l), t.units(40))
	lock := t.inspect("a")
	t.want(lock.Mode == lockinfo.Exclusive && lock.QueueLength == 0, "calls with an ended context left %+v, want an exclusive lock without a queue", lock)
	for _, name := range []string{"another", "{tag}one", "{tag}two"} {
		t.free(name)
	}
	if canRecord(t) {
		t.recorded("a", "result")
	}
	if canVault(t) {
		t.isState(proofOf("another"), driver.Unknown)
		t.fresh(d)
	}
}

func errorsLeaveOutName(t *T) {
	gone := t.take("zanzibar", t.units(8))
	t.mustRelease(gone)
	tooFar := ask("zanzibar", t.units(8))
	tooFar.MinToken = driver.MaxToken
	_, invalid := t.Engine.Acquire(t.Context(), tooFar)
	errs := []error{t.extend(gone, t.units(8)), t.release(gone), invalid}
	if canCount(t) {
		held := t.take("zanzibar", t.units(8))
		_, mismatch := t.Engine.Acquire(t.Context(), askPermits("zanzibar", 1, 2, t.units(8)))
		errs = append(errs, mismatch)
		t.mustRelease(held)
	}
	for _, c := range calls(t) {
		errs = append(errs, c.err(t.Context(), t, gone))
	}
	errs = append(errs, t.Engine.Close())
	for _, c := range calls(t) {
		errs = append(errs, c.err(t.Context(), t, gone))
	}
	for _, err := range errs {
		t.want(err == nil || !strings.Contains(err.Error(), "zanzibar"), "error %q contains the lock's name", err)
	}
}

func closedEngine(t *T) {
	l := t.take("a", t.units(40))
	all := calls(t)
	for range 2 {
		t.must("Close", "", t.Engine.Close())
	}
	for _, c := range all {
		t.fails(c.method+" after Close", c.err(t.Context(), t, l), driver.ErrClosed)
	}
}

func closeLeavesLeases(t *T) {
	other := t.join()
	l := other.take("a", t.units(40))
	t.must("Close", "", other.Engine.Close())
	t.live(l)
	t.refused("a")
	t.mustRelease(l)
}
