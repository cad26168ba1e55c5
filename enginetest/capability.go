package enginetest

import (
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

func hasMaxTTL(t *T) bool { return t.Engine.Capabilities().MaxTTL > 0 }

func maxTTLBoundsLeases(t *T) {
	longest := t.Engine.Capabilities().MaxTTL
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
	longest := t.Engine.Capabilities().MaxTTL
	l := t.take("a", t.units(8))
	t.mustKeep(l, 2*longest)
	if left := t.refused("a").ExpiresIn; left > longest || left < longest-t.units(2) {
		t.Errorf("closed for %s, want %s", left, longest)
	}
}

func implementsCapabilities(t *T) {
	capable := t.Engine.Capabilities()
	if capable.Queue && !canQueue(t) {
		t.Errorf("Capabilities.Queue is set, but the engine is no driver.Queuer")
	}
	if capable.Shared && !canShare(t) {
		t.Errorf("Capabilities.Shared is set, but the engine is no driver.Downgrader")
	}
	if capable.Break && !canBreak(t) {
		t.Errorf("Capabilities.Break is set, but the engine is no driver.Breaker")
	}
	if capable.Losses && !canTellLosses(t) {
		t.Errorf("Capabilities.Losses is set, but the engine is no driver.LossTeller")
	}
	t.take("a", t.units(8))
	if t.Engine.Capabilities() != capable {
		t.Errorf("Capabilities() has changed")
	}
}

// unsupported sends a request that change makes unsupported, to a free name
// and to a held one.
func unsupported(t *T, change func(*driver.AcquireRequest)) {
	l := t.take("held", t.units(40))
	for _, name := range []string{"free", "held"} {
		req := ask(name, t.units(8))
		change(&req)
		if _, err := t.Engine.Acquire(t.Context(), req); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s name: error %v, want ErrUnsupported", name, err)
		}
	}
	t.free("free")
	t.live(l)
	all := askTagged(t.units(8), "one", "two")
	if change(&all[1]); canAcquireAll(t) && !all[1].Queue {
		if _, err := t.Engine.(driver.AllAcquirer).AcquireAll(t.Context(), all); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("AcquireAll: error %v, want ErrUnsupported", err)
		}
		t.nothingOf(all)
	}
}
