package enginetest

import (
	"context"
	"time"
)

func repeatRequirements() []Requirement {
	return []Requirement{{
		Name:        "RepeatIsGrantedAgain",
		Explanation: "a repeated acquire of the live lease's own ID must be granted, with the token of the first time",
		Invariant:   "I6",
		Run:         repeatIsGranted,
	}, {
		Name:        "RepeatLengthens",
		Explanation: "a repeated acquire must make the lease last at least until its TTL from now",
		Invariant:   "I6",
		Run:         repeatLengthens,
	}, {
		Name:        "RepeatNeverShortens",
		Explanation: "a repeated acquire must not shorten the lease, extended meanwhile or not",
		Invariant:   "I6",
		Run:         repeatNeverShortens,
	}, {
		Name:        "RepeatComparesWholeID",
		Explanation: "only the live lease's own ID, compared whole, makes an acquire a repeat",
		Invariant:   "I1",
		Run:         repeatComparesWholeID,
	}, {
		Name:        "RepeatAfterExpiryIsNewGrant",
		Explanation: "once the lease has expired, its ID must be granted as any other: if free, with a greater token",
		Invariant:   "I2",
		Run:         repeatAfterExpiry,
	}, {
		Name:        "RepeatOutlivesCleanUp",
		Explanation: "what the engine still does after an acquire that failed must not end the lease that a repeat is granted",
		Invariant:   "I5",
		Run:         repeatOutlivesCleanUp,
	}}
}

// repeatOutlivesCleanUp repeats an acquire whose context ended before it, or
// perhaps while it was under way.
func repeatOutlivesCleanUp(t *T) {
	var leases []lease
	for i, after := range []time.Duration{0, time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		req := ask(string(rune('a'+i)), t.units(40))
		_, _ = t.Engine.Acquire(ctx, req) // it may have come in time
		cancel()
		leases = append(leases, t.grant(req))
	}
	time.Sleep(t.units(1))
	for _, l := range leases {
		t.live(l)
		t.mustRelease(l)
	}
}

func repeatIsGranted(t *T) {
	l := t.take("a", t.units(8))
	for range 2 {
		if again := t.grant(l.AcquireRequest); again.token != l.token {
			t.Errorf("token of the repeat = %d, want %d", again.token, l.token)
		}
	}
	t.mustExtend(l, t.units(16))
	if again := t.grant(l.AcquireRequest); again.token != l.token {
		t.Errorf("token of the repeat after Extend = %d, want %d", again.token, l.token)
	}
	lock := t.inspect("a")
	if len(lock.Holders) != 1 || lock.LastToken != l.token {
		t.Errorf("after repeats: %d leases and last token %d, want 1 and %d", len(lock.Holders), lock.LastToken, l.token)
	}
}

func repeatLengthens(t *T) {
	l := t.take("a", t.units(8))
	l.TTL = t.units(40)
	if left := t.live(t.grant(l.AcquireRequest)); left < t.units(30) {
		t.Errorf("%s left after a repeat with %s", left, l.TTL)
	}
}

func repeatNeverShortens(t *T) {
	l := t.take("a", t.units(40))
	l.TTL = t.units(2)
	if left := t.live(t.grant(l.AcquireRequest)); left < t.units(30) {
		t.Fatalf("a repeat with %s left %s of %s", l.TTL, left, t.units(40))
	}
	t.mustExtend(l, t.units(400))
	if left := t.live(t.grant(l.AcquireRequest)); left < t.units(300) {
		t.Errorf("a repeat with %s left %s of the %s extended to", l.TTL, left, t.units(400))
	}
}

func repeatComparesWholeID(t *T) {
	l := t.take("a", t.units(40))
	for _, id := range nearMisses(l.LeaseID) {
		near := l.AcquireRequest
		near.LeaseID = id
		t.refuse(near)
	}
}

func repeatAfterExpiry(t *T) {
	l := t.take("a", t.units(1))
	time.Sleep(t.units(2))
	again := t.eventually(l.AcquireRequest, t.units(2))
	if again.token <= l.token {
		t.Errorf("token = %d, want more than %d of the expired lease", again.token, l.token)
	}
	t.live(again)
}
