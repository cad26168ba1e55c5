package holdfasttest

import (
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// patience bounds each wait of a test. It is long because the machine may be busy.
const patience = 20 * time.Second

// change wakes the waiters for a change.
func (k *Kit) change() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changed != nil {
		close(k.changed)
		k.changed = nil
	}
}

// await waits until ok returns true, and reports whether it does within d. It calls ok at each
// change.
func (k *Kit) await(d time.Duration, ok func() bool) bool {
	k.t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	for over := false; ; {
		k.mu.Lock()
		if k.changed == nil {
			k.changed = make(chan struct{})
		}
		changed := k.changed
		k.mu.Unlock()
		switch {
		case ok():
			return true
		case over:
			return false
		}
		select {
		case <-changed:
		case <-timer.C:
			over = true
		}
	}
}

// Held reports whether a client of the kit has a lock, according to the store, and has not
// begun to release it. Use it to check code that must run only under that lock. A lock that is
// held elsewhere does not count.
func (k *Kit) Held(name string) bool {
	k.t.Helper()
	holders := k.inspect(name).Holders
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(holders, func(h lockinfo.Holding) bool { return k.leases[h.LeaseID] != nil })
}

// AwaitHeld waits, without sleeping, until a client of the kit has a lock. It fails
// the test if that takes longer than 20 seconds.
func (k *Kit) AwaitHeld(name string) {
	k.t.Helper()
	if !k.await(patience, func() bool { return k.Held(name) }) {
		k.t.Fatalf("holdfasttest: nobody has acquired %q within %s", name, patience)
	}
}

// Waiters returns how many waiters a lock has in the queue of the store.
func (k *Kit) Waiters(name string) int {
	k.t.Helper()
	return k.inspect(name).QueueLength
}

// AwaitWaiters waits, without sleeping, until a lock has at least n waiters. It fails
// the test if that takes longer than 20 seconds.
func (k *Kit) AwaitWaiters(name string, n int) {
	k.t.Helper()
	if !k.await(patience, func() bool { return k.Waiters(name) >= n }) {
		k.t.Fatalf("holdfasttest: %d wait for %q after %s, want %d", k.Waiters(name), name, patience, n)
	}
}

// AwaitStop waits until every holder that has lost a lock to Lose has called Release, as Do
// does when its work returns. That is how the library knows that a holder has stopped. It
// fails the test if that takes longer than d.
func (k *Kit) AwaitStop(name string, d time.Duration) {
	k.t.Helper()
	at := ""
	stopped := func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, l := range k.leases {
			if l.name == name && l.lost {
				at = l.from()
				return false
			}
		}
		return true
	}
	if !k.await(d, stopped) {
		k.t.Fatalf("holdfasttest: the holder of %q lost it and has not stopped within %s%s", name, d, at)
	}
}
