package enginetest

import (
	"errors"

	"github.com/holdfast-locks/holdfast/driver"
)

func capabilityRequirements() []Requirement {
	return []Requirement{{
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
			unsupported(t, func(r *driver.AcquireRequest) { r.Mode, r.Limit = driver.Semaphore, 2 })
		},
	}, {
		Name:        "RefusesQueueIfUnsupported",
		Explanation: "without Capabilities.Queue a request for a place must fail with ErrUnsupported and change nothing",
		Needs:       func(t *T) bool { return !t.Engine.Capabilities().Queue },
		Run: func(t *T) {
			unsupported(t, func(r *driver.AcquireRequest) { r.Queue, r.WaiterTTL = true, t.units(2) })
		},
	}}
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
}
