package enginetest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func capabilityRequirements() []Requirement {
	return []Requirement{{
		Name:        "ImplementsCapabilities",
		Explanation: "an engine must have the methods that its Capabilities promise",
		Run:         implementsCapabilities,
	}, {
		Name:        "RefusesSharedIfUnsupported",
		Explanation: "without Capabilities.Shared a shared request must fail with ErrUnsupported and change nothing",
		Invariant:   "I12",
		Needs:       func(t *T) bool { return !t.Engine.Capabilities().Shared },
		Run:         func(t *T) { unsupported(t, func(r *driver.AcquireRequest) { r.Mode = driver.Shared }) },
	}, {
		Name:        "RefusesSemaphoreIfUnsupported",
		Explanation: "without Capabilities.Semaphore a semaphore request must fail with ErrUnsupported and change nothing",
		Invariant:   "I12",
		Needs:       func(t *T) bool { return !t.Engine.Capabilities().Semaphore },
		Run: func(t *T) {
			unsupported(t, func(r *driver.AcquireRequest) { r.Mode, r.Permits, r.Limit = driver.Semaphore, 1, 2 })
		},
	}, {
		Name:        "RefusesQueueIfUnsupported",
		Explanation: "without Capabilities.Queue a request for a place must fail with ErrUnsupported and change nothing",
		Needs:       func(t *T) bool { return !t.Engine.Capabilities().Queue },
		Run: func(t *T) {
			unsupported(t, func(r *driver.AcquireRequest) { r.Queue, r.WaiterTTL = true, t.units(2) })
		},
	}, {
		Name:        "RefusesReplicasIfUnsupported",
		Explanation: "without Capabilities.Replicas a request with Replicas must fail with ErrUnsupported and change nothing",
		Needs:       func(t *T) bool { return !t.Engine.Capabilities().Replicas },
		Run:         func(t *T) { unsupported(t, func(r *driver.AcquireRequest) { r.Replicas = 1 }) },
	}, {
		Name:        "RefusesOnceIfUnsupported",
		Explanation: "without Capabilities.Records a request with Once must fail with ErrUnsupported and change nothing",
		Needs:       func(t *T) bool { return !t.Engine.Capabilities().Records },
		Run:         func(t *T) { unsupported(t, func(r *driver.AcquireRequest) { r.Once = true }) },
	}, {
		Name: "RefusesMethodsIfUnsupported",
		Explanation: "a method whose flag is not set must fail with ErrUnsupported, change nothing, " +
			"and not ask the store, so that an ended context makes no difference",
		Needs: func(t *T) bool { return idle(t) != driver.Features{} },
		Run:   refusesMethods,
	}, {
		Name:        "MaxTTLBoundsLeases",
		Explanation: "a TTL longer than Capabilities.MaxTTL must be refused with ErrInvalid, and change nothing; MaxTTL itself must be granted",
		Needs:       hasMaxTTL,
		Run:         maxTTLBoundsLeases,
	}, {
		Name:        "MaxTTLBoundsKeepFor",
		Explanation: "a KeepFor longer than Capabilities.MaxTTL must count as MaxTTL",
		Needs:       hasMaxTTL,
		Run:         maxTTLBoundsKeepFor,
	}}
}

func hasMaxTTL(t *T) bool { return t.Features.MaxTTL > 0 }

func maxTTLBoundsLeases(t *T) {
	longest := t.Features.MaxTTL
	if _, err := t.Engine.Acquire(t.Context(), ask("a", longest+time.Millisecond)); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Acquire with a TTL of more than %s: error %v, want ErrInvalid", longest, err)
	}
	t.free("a")
	l := t.take("a", longest)
	if err := t.extend(l, longest+time.Millisecond); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Extend by more than %s: error %v, want ErrInvalid", longest, err)
	}
	t.mustExtend(l, longest)
	t.mustRelease(l)
}

func maxTTLBoundsKeepFor(t *T) {
	longest := t.Features.MaxTTL
	l := t.take("a", t.units(8))
	t.mustKeep(l, 2*longest)
	if left := t.refused("a").ExpiresIn; left > longest || left < longest-t.units(2) {
		t.Errorf("closed for %s, want %s", left, longest)
	}
}

func implementsCapabilities(t *T) {
	if _, err := driver.FeaturesOf(t.Engine); err != nil {
		t.Errorf("%v", err)
	}
	capable := t.Engine.Capabilities()
	t.take("a", t.units(8))
	if t.Engine.Capabilities() != capable {
		t.Errorf("Capabilities() has changed")
	}
}

// idle returns what the engine has methods for and no flags.
func idle(t *T) (f driver.Features) {
	of := t.Engine.Capabilities()
	unflagged(&f.Queuer, t, of.Queue)
	unflagged(&f.Downgrader, t, of.Shared)
	unflagged(&f.AllAcquirer, t, of.AcquireAll)
	unflagged(&f.Recorder, t, of.Records)
	unflagged(&f.RecordLister, t, of.ListRecords)
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

// contexts returns one that lasts and one that has ended.
func contexts(t *T) map[string]context.Context {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	return map[string]context.Context{"in time": t.Context(), "with an ended context": ended}
}

func refusesMethods(t *T) {
	f, l := idle(t), t.take("a", t.units(40))
	for _, c := range optionalCalls(t, f) {
		for what, ctx := range contexts(t) {
			if err := c.err(ctx, t, l); !errors.Is(err, driver.ErrUnsupported) {
				t.Errorf("%s %s: error %v, want ErrUnsupported", c.method, what, err)
			}
		}
	}
	// These have no error to return.
	if f.Queuer != nil {
		f.Queuer.Watch(driver.NewLeaseID()).Stop()
	}
	if f.LossTeller != nil {
		f.LossTeller.OnLoss(func(driver.Loss) {})()
	}
	if f.Historian != nil {
		f.Historian.OnEvent(func(driver.Event) {})()
	}
	if left := t.live(l); left > t.units(40)+t.slack() {
		t.Errorf("the lease lasts for %s, want what it was granted for", left)
	}
	for _, name := range []string{"one", "two", "another"} {
		t.free(name)
	}
}

// unsupported sends a request that change makes unsupported, to a free name
// and to a held one.
func unsupported(t *T, change func(*driver.AcquireRequest)) {
	l := t.take("held", t.units(40))
	for _, name := range []string{"free", "held"} {
		req := ask(name, t.units(8))
		change(&req)
		for what, ctx := range contexts(t) {
			if _, err := t.Engine.Acquire(ctx, req); !errors.Is(err, driver.ErrUnsupported) {
				t.Errorf("%s name, %s: error %v, want ErrUnsupported", name, what, err)
			}
		}
	}
	t.free("free")
	t.live(l)
	all := askTagged(t.units(8), "one", "two")
	if change(&all[1]); canAcquireAll(t) && !all[1].Queue && !all[1].Once {
		if _, err := t.Features.AllAcquirer.AcquireAll(t.Context(), all); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("AcquireAll: error %v, want ErrUnsupported", err)
		}
		t.nothingOf(all)
	}
}
