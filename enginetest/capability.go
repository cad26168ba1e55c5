package enginetest

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func capabilityRequirements() []Requirement {
	return []Requirement{
		{"ImplementsCapabilities", "", nil, implementsCapabilities,
			"an engine must have the methods that its Capabilities promise"},
		{"RefusesSharedIfUnsupported", "I12",
			func(t *T) bool { return !t.Engine.Capabilities().Shared },
			func(t *T) { unsupported(t, func(r *driver.AcquireRequest) { r.Mode = lockinfo.Shared }) },
			"without Capabilities.Shared a shared request must fail with ErrUnsupported and change nothing"},
		{"RefusesSemaphoreIfUnsupported", "I12",
			func(t *T) bool { return !t.Engine.Capabilities().Semaphore },
			func(t *T) { unsupported(t, func(r *driver.AcquireRequest) { r.Mode = lockinfo.Permits(1, 2) }) },
			"without Capabilities.Semaphore a semaphore request must fail with ErrUnsupported and change nothing"},
		{"RefusesModeOutOfRange", "I12", nil, func(t *T) {
			refuses(t, driver.ErrInvalid, func(r *driver.AcquireRequest) { r.Mode = lockinfo.Permits(3, 2) })
		},
			"a request whose Mode.Check fails must fail with ErrInvalid and change nothing"},
		{"RefusesQueueIfUnsupported", "", func(t *T) bool { return !t.Engine.Capabilities().Queue }, func(t *T) {
			unsupported(t, func(r *driver.AcquireRequest) { r.Queue, r.WaiterTTL = true, t.units(2) })
		},
			"without Capabilities.Queue a request for a place must fail with ErrUnsupported and change nothing"},
		{"RefusesReplicasIfUnsupported", "",
			func(t *T) bool { return !t.Engine.Capabilities().Replicas },
			func(t *T) { unsupported(t, func(r *driver.AcquireRequest) { r.Replicas = 1 }) },
			"without Capabilities.Replicas a request with Replicas must fail with ErrUnsupported and change nothing"},
		{"RefusesOnceIfUnsupported", "",
			func(t *T) bool { return !t.Engine.Capabilities().Records },
			func(t *T) { unsupported(t, func(r *driver.AcquireRequest) { r.Once = true }) },
			"without Capabilities.Records a request with Once must fail with ErrUnsupported and change nothing"},
		{"RefusesMethodsIfUnsupported", "", func(t *T) bool { return idle(t) != driver.Features{} }, refusesMethods,
			"a method whose flag is not set must fail with ErrUnsupported, change nothing, " +
				"and not ask the store, so that an ended context makes no difference"},
		{"MaxTTLBoundsLeases", "", hasMaxTTL, maxTTLBoundsLeases,
			"a TTL longer than Capabilities.MaxTTL must be refused with ErrInvalid, and change nothing; MaxTTL itself must be granted"},
		{"MaxTTLBoundsKeepFor", "", hasMaxTTL, maxTTLBoundsKeepFor,
			"a KeepFor longer than Capabilities.MaxTTL must count as MaxTTL"},
	}
}

func hasMaxTTL(t *T) bool { return t.Features.MaxTTL > 0 }

func maxTTLBoundsLeases(t *T) {
	longest := t.Features.MaxTTL
	t.acquireFails("Acquire with a TTL of more than MaxTTL", ask("a", longest+time.Millisecond), driver.ErrInvalid)
	t.free("a")
	l := t.take("a", longest)
	t.fails("Extend by more than MaxTTL", t.extend(l, longest+time.Millisecond), driver.ErrInvalid)
	t.mustExtend(l, longest)
	t.mustRelease(l)
}

func maxTTLBoundsKeepFor(t *T) {
	longest := t.Features.MaxTTL
	l := t.take("a", t.units(8))
	t.mustKeep(l, 2*longest)
	left := t.refused("a").ExpiresIn
	t.want(left <= longest && left >= longest-t.units(2), "closed for %s, want %s", left, longest)
}

func implementsCapabilities(t *T) {
	_, err := driver.FeaturesOf(t.Engine)
	t.want(err == nil, "%v", err)
	capable := t.Engine.Capabilities()
	t.take("a", t.units(8))
	t.want(t.Engine.Capabilities() == capable, "Capabilities() has changed")
}

// idle returns the features for which the engine has methods, but no flags.
func idle(t *T) (f driver.Features) {
	of := t.Engine.Capabilities()
	unflagged(&f.Queuer, t, of.Queue)
	unflagged(&f.Downgrader, t, of.Shared)
	unflagged(&f.AllAcquirer, t, of.AcquireAll)
	unflagged(&f.Recorder, t, of.Records)
	unflagged(&f.Vault, t, of.OneTime)
	unflagged(&f.Lister, t, of.List)
	unflagged(&f.Breaker, t, of.Break)
	unflagged(&f.LossTeller, t, of.Losses)
	unflagged(&f.Diagnoser, t, of.Diagnose)
	unflagged(&f.Historian, t, of.History)
	return f
}

func unflagged[I any](as *I, t *T, flag bool) {
	if !flag {
		*as, _ = t.Engine.(I)
	}
}

// contexts returns a live context and one that has ended.
func contexts(t *T) map[string]context.Context {
	return map[string]context.Context{"in time": t.Context(), "with an ended context": t.endedContext()}
}

func refusesMethods(t *T) {
	f, l := idle(t), t.take("a", t.units(40))
	for _, c := range optionalCalls(t, f) {
		for what, ctx := range contexts(t) {
			t.fails(c.method+" "+what, c.err(ctx, t, l), driver.ErrUnsupported)
		}
	}
	// These methods return no error.
	if f.Queuer != nil {
		f.Queuer.Watch(lockinfo.NewLeaseID()).Stop()
	}
	if f.LossTeller != nil {
		f.LossTeller.OnLoss(func(driver.Loss) {})()
	}
	if f.Historian != nil {
		f.Historian.OnEvent(func(lockinfo.HistoryEvent) {})()
	}
	t.atMost("the lease", t.live(l), t.units(40))
	for _, name := range []string{"one", "two", "another"} {
		t.free(name)
	}
}

// unsupported is refuses for a change that makes requests unsupported.
func unsupported(t *T, change func(*driver.AcquireRequest)) {
	refuses(t, driver.ErrUnsupported, change)
}

// refuses sends a changed request for a free name and for a held name. It fails the run unless the
// engine returns an error that wraps want and changes nothing.
func refuses(t *T, want error, change func(*driver.AcquireRequest)) {
	l := t.take("held", t.units(40))
	for _, name := range []string{"free", "held"} {
		req := ask(name, t.units(8))
		change(&req)
		for what, ctx := range contexts(t) {
			_, err := t.Engine.Acquire(ctx, req)
			t.fails(name+" name, "+what, err, want)
		}
	}
	t.free("free")
	t.live(l)
	all := askTagged(t.units(8), "one", "two")
	if change(&all[1]); canAcquireAll(t) && !all[1].Queue && !all[1].Once {
		t.acquireAllFails("AcquireAll", all, want)
	}
}
