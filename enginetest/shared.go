package enginetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func sharedRequirements() []Requirement {
	return []Requirement{{
		Name:        "SharedLeasesAreCompatible",
		Explanation: "any number of shared leases must be live at once, each with a token and an end of its own",
		Invariant:   "I1",
		Needs:       canShare,
		Run:         sharedCompatible,
	}, {
		Name:        "SharedKeepsExclusiveOut",
		Explanation: "an exclusive request must be refused until the last shared lease has ended",
		Invariant:   "I1",
		Needs:       canShare,
		Run:         sharedKeepsExclusiveOut,
	}, {
		Name:        "ExclusiveKeepsSharedOut",
		Explanation: "a shared request must be refused while an exclusive lease is live",
		Invariant:   "I1",
		Needs:       canShare,
		Run:         exclusiveKeepsSharedOut,
	}, {
		Name:        "SemaphoreGrantsLimit",
		Explanation: "a semaphore must have at most Limit live leases, each with a token and an end of its own",
		Invariant:   "I1",
		Needs:       canCount,
		Run:         semaphoreGrantsLimit,
	}, {
		Name:        "SemaphoreGrantsLimitUnderContention",
		Explanation: "of many semaphore requests at once, Limit must be granted",
		Invariant:   "I1",
		Needs:       canCount,
		Run:         semaphoreContention,
	}, {
		Name:        "SemaphoreChecksKind",
		Explanation: "a name with live permits must refuse another Limit and another Mode with ErrKindMismatch",
		Invariant:   "I12",
		Needs:       canCount,
		Run:         semaphoreChecksKind,
	}}
}

func canShare(t *T) bool { return t.Engine.Capabilities().Shared }
func canCount(t *T) bool { return t.Engine.Capabilities().Semaphore }

// askShared returns a shared request with a lease ID of its own.
func askShared(name string, ttl time.Duration) driver.AcquireRequest {
	req := ask(name, ttl)
	req.Mode = driver.Shared
	return req
}

// askPermit returns a request for one of limit permits.
func askPermit(name string, limit int, ttl time.Duration) driver.AcquireRequest {
	req := ask(name, ttl)
	req.Mode, req.Limit = driver.Semaphore, limit
	return req
}

// endsAlone lets first, a lease of two units, expire beside second, a long
// lease of the same name, and checks that they do not share an end.
func (t *T) endsAlone(first, second lease) {
	t.Helper()
	if again := t.grant(second.AcquireRequest); again.token != second.token {
		t.Errorf("token of a repeat = %d, want %d", again.token, second.token)
	}
	time.Sleep(t.units(3))
	t.lost("Extend of the expired one of two leases", t.extend(first, t.units(8)))
	t.live(second)
}

func sharedCompatible(t *T) {
	first := t.grant(askShared("a", t.units(2)))
	second := t.grant(askShared("a", t.units(40)))
	if lock := t.inspect("a"); len(lock.Holders) != 2 || lock.Mode != driver.Shared || lock.LastToken != second.token {
		t.Errorf("%d holders, mode %d, last token %d; want 2, %d, %d",
			len(lock.Holders), lock.Mode, lock.LastToken, driver.Shared, second.token)
	}
	t.endsAlone(first, second)
	t.mustRelease(second)
	t.free("a")
}

func sharedKeepsExclusiveOut(t *T) {
	first := t.grant(askShared("a", t.units(40)))
	second := t.grant(askShared("a", t.units(40)))
	t.refused("a")
	t.mustRelease(second)
	t.refused("a")
	t.mustRelease(first)
	t.take("a", t.units(40))
}

func exclusiveKeepsSharedOut(t *T) {
	l := t.take("a", t.units(40))
	t.refuse(askShared("a", t.units(8)))
	t.mustRelease(l)
	t.grant(askShared("a", t.units(8)))
}

func semaphoreGrantsLimit(t *T) {
	first := t.grant(askPermit("a", 3, t.units(2)))
	second := t.grant(askPermit("a", 3, t.units(40)))
	third := t.grant(askPermit("a", 3, t.units(40)))
	t.refuse(askPermit("a", 3, t.units(1)))
	if lock := t.inspect("a"); len(lock.Holders) != 3 || lock.Mode != driver.Semaphore {
		t.Errorf("%d holders, mode %d; want 3, %d", len(lock.Holders), lock.Mode, driver.Semaphore)
	}
	t.endsAlone(first, second)
	t.grant(askPermit("a", 3, t.units(40)))
	t.refuse(askPermit("a", 3, t.units(1)))
	t.mustRelease(third)
	t.grant(askPermit("a", 3, t.units(40)))
	t.refuse(askPermit("a", 3, t.units(1)))
}

func semaphoreContention(t *T) {
	var granted atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			reply, err := t.Engine.Acquire(t.Context(), askPermit("a", 3, t.units(40)))
			if err != nil {
				t.Errorf("Acquire: %v", err)
			} else if reply.Outcome == driver.Granted {
				granted.Add(1)
			}
		})
	}
	wg.Wait()
	if n := granted.Load(); n != 3 {
		t.Errorf("%d of 16 attempts at once were granted, want 3", n)
	}
}

func semaphoreChecksKind(t *T) {
	l := t.grant(askPermit("a", 3, t.units(40)))
	for what, req := range map[string]driver.AcquireRequest{
		"a greater limit":      askPermit("a", 4, t.units(8)),
		"a smaller limit":      askPermit("a", 2, t.units(8)),
		"an exclusive request": ask("a", t.units(8)),
	} {
		if _, err := t.Engine.Acquire(t.Context(), req); !errors.Is(err, driver.ErrKindMismatch) {
			t.Errorf("%s: error %v, want ErrKindMismatch", what, err)
		}
	}
	t.live(l)
	t.grant(askPermit("a", 3, t.units(40)))
}
