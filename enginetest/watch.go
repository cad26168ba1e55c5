package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func watchRequirements() []Requirement {
	return []Requirement{
		{"WatchTellsGrant", "I7", canQueue, func(t *T) { watchTells(t, t) },
			"a watch must receive the token of the lease that was handed over, at release and cancel"},
		{"WatchTellsGrantAcrossEngines", "I7", both(canQueue, hasJoin), func(t *T) { watchTells(t, t.join()) },
			"a watch must learn of a lease that was handed over by another engine on the store"},
		{"WatchTellsWhoAskedLast", "I7", both(canQueue, hasJoin), watchTellsLast,
			"notices of a place must reach the engine that requested it last, whichever requested it first"},
		{"WatchTellsGrantAtExpiry", "I7", canQueue, watchTellsAtExpiry,
			"a watch must learn of a lease that was handed over when another's request noticed an expiry"},
		{"WatchTellsAllReaders", "I7", both(canQueue, canShare), watchTellsReaders,
			"every watch must receive a notice when several are handed the lock together, by whatever makes room"},
		{"WatchMissesNoGrant", "I7", canQueue, watchMissesNothing,
			"a watch must receive a notice, to look at least, of a hand-over that comes before the answer Held is received"},
		{"WatchKeepsLatestNotice", "", canQueue, watchKeepsLatest,
			"a notice that is not received must be replaced by a later one, and delay no other"},
		{"WatchKeepsGrant", "", both(canQueue, canRecord), watchKeepsGrant,
			"a notice of a grant that is not received must not be replaced by the notice that it is time to look"},
		{"WatchIgnoresExtend", "I7", canQueue, watchIgnoresExtend,
			"extending a lease must not cause a message to those who wait for it"},
		{"WatchStops", "", canQueue, watchStops,
			"Stop must end one watch and no other, a second Stop must do nothing, and C must not be closed"},
	}
}

// watch starts a watch and stops it when the run ends.
func (t *T) watch(id lockinfo.LeaseID) driver.Watch {
	t.Helper()
	w := t.Features.Queuer.Watch(id)
	t.Cleanup(w.Stop)
	return w
}

// watchPlace starts a watch of req, and then sends the request, which must get the given place.
func (t *T) watchPlace(req driver.AcquireRequest, place int) driver.Watch {
	t.Helper()
	w := t.watch(req.LeaseID)
	t.placed(req, place)
	return w
}

// told returns the next notice of w, if one arrives within d.
func told(w driver.Watch, d time.Duration) (notice driver.Notice, ok bool) {
	select {
	case notice = <-w.C():
		return notice, true
	default:
	}
	select {
	case notice = <-w.C():
		return notice, true
	case <-time.After(d):
		return driver.Notice{}, false
	}
}

// listens ensures that messages reach the engine: it takes a place and receives the first notices,
// which may only report that earlier messages were lost.
func (t *T) listens() {
	t.Helper()
	l := t.take("warm up "+string(lockinfo.NewLeaseID()), t.units(400)) // other engines warm up, too
	req := forPlace(ask(l.Name, t.units(8)), t.units(40))
	w := t.watchPlace(req, 1)
	t.quiet(w)
	t.mustCancel(req)
	w.Stop()
	t.mustRelease(l)
}

// quiet receives notices of w until none arrives for one unit.
func (t *T) quiet(w driver.Watch) {
	t.Helper()
	for range 20 {
		if _, ok := told(w, t.Unit); !ok {
			return
		}
	}
	t.Fatalf("a watch of an unchanged place has notices without end")
}

// mustTell fails the run unless w soon delivers the token of the lease that was handed over to req.
func (t *T) mustTell(w driver.Watch, req driver.AcquireRequest) lease {
	t.Helper()
	var notice driver.Notice
	for looks := 0; notice.Token == 0; looks++ {
		var ok bool
		notice, ok = told(w, t.units(8))
		t.need(ok && looks != 20, "no notice of a grant for %s after %q was to be handed over", t.units(8), req.Name)
	}
	l := t.handed(req)
	t.need(notice.Token == l.token, "a notice of token %d, want %d", notice.Token, l.token)
	return l
}

// watchTells ends leases through other while waiters of t wait for them.
func watchTells(t, other *T) {
	t.listens()
	for _, name := range []string{"a", "{a}", "a b/ключ*"} {
		l := t.take(name, t.units(400))
		first := forPlace(ask(name, t.units(40)), t.units(40))
		second := forPlace(ask(name, t.units(40)), t.units(40))
		firstWatch, secondWatch := t.watchPlace(first, 1), t.watchPlace(second, 2)
		other.mustRelease(l)
		other.mustCancel(t.mustTell(firstWatch, first).AcquireRequest)
		t.mustTell(secondWatch, second)
	}
}

// watchTellsLast requests places through one engine after the other, and one of them through the
// first again.
func watchTellsLast(t *T) {
	other := t.join()
	t.listens()
	other.listens()
	l := t.take("a", t.units(400))
	first, second := forPlace(ask("a", t.units(40)), t.units(40)), forPlace(ask("a", t.units(40)), t.units(40))
	t.watchPlace(first, 1).Stop()
	t.watchPlace(second, 2).Stop()
	moved := other.watchPlace(first, 1)
	other.watchPlace(second, 2).Stop()
	back := t.watchPlace(second, 2)
	t.mustRelease(l)
	t.mustRelease(other.mustTell(moved, first))
	t.mustTell(back, second)
}

func watchTellsAtExpiry(t *T) {
	t.listens()
	t.take("a", t.units(1))
	first := forPlace(ask("a", t.units(40)), t.units(40))
	w := t.watchPlace(first, 1)
	time.Sleep(t.units(2))
	t.refused("a")
	t.mustTell(w, first)
}

func watchTellsReaders(t *T) {
	t.listens()
	for _, by := range []string{"Release", "Downgrade", "end of a place"} {
		holder := t.take(by, t.units(40))
		var before []driver.AcquireRequest
		if by == "end of a place" {
			before = append(before, t.queue(by, 1))
		}
		var readers []driver.AcquireRequest
		var watches []driver.Watch
		for i := range 3 {
			readers = append(readers, forPlace(askShared(by, t.units(40)), t.units(40)))
			watches = append(watches, t.watchPlace(readers[i], len(before)+i+1))
		}
		if by == "Release" {
			t.mustRelease(holder)
		} else {
			t.mustDowngrade(holder)
		}
		for _, req := range before {
			t.mustCancel(req)
		}
		for i, req := range readers {
			t.mustTell(watches[i], req)
		}
	}
}

// watchMissesNothing ends the lease as soon as the store has created the place, or a little
// earlier. With the right timing this is before the reply reaches the waiter. The engine is new, so
// that its first notice may only ask for a refresh.
func watchMissesNothing(t *T) {
	for i := range 8 {
		l := t.take("a", t.units(40))
		req := forPlace(ask("a", t.units(40)), t.units(40))
		w := t.watch(req.LeaseID)
		released := make(chan error, 1)
		go func() {
			for start := time.Now(); i%2 == 0 && time.Since(start) < t.units(8); time.Sleep(t.Unit / 100) {
				if lock, err := t.Engine.Inspect(t.Context(), "a"); err != nil || lock.QueueLength == 1 {
					break
				}
			}
			released <- t.release(l)
		}()
		reply := t.acquire(req)
		t.must("Release", "a", <-released)
		if reply.Outcome == driver.Held {
			t.learns(w, req)
		}
		t.mustRelease(t.handed(req))
		w.Stop()
	}
}

// learns fails the run unless a waiter that only refreshes when a notice asks for it soon learns
// that it was handed the lock.
func (t *T) learns(w driver.Watch, req driver.AcquireRequest) {
	t.Helper()
	for range 20 {
		notice, ok := told(w, t.units(8))
		if !ok {
			break
		}
		if notice.Token != 0 {
			return
		}
		if reply := t.refresh(req, req.WaiterTTL); reply.Err == nil && reply.Outcome == driver.Granted {
			return
		}
	}
	t.Fatalf("a waiter does not learn that it was handed the lock")
}

// granted hands the lock over to req, after it has got the first place.
func (t *T) granted(req driver.AcquireRequest) lease {
	t.Helper()
	l := t.take(req.Name, t.units(40))
	t.placed(req, 1)
	t.mustRelease(l)
	return t.handed(req)
}

// onlyNotice fails the run unless w delivers exactly one notice, with this token.
func (t *T) onlyNotice(w driver.Watch, token uint64) {
	t.Helper()
	time.Sleep(t.Unit) // the transit of the messages
	notice, ok := told(w, 0)
	t.want(ok && notice.Token == token, "a notice of token %d (any: %t), want %d", notice.Token, ok, token)
	notice, ok = told(w, t.slack())
	t.want(!ok, "another notice, of token %d, want only the latest to be kept", notice.Token)
}

func watchKeepsLatest(t *T) {
	t.listens()
	req := forPlace(ask("a", t.units(40)), t.units(40))
	w := t.watch(req.LeaseID)
	for range 3 {
		t.mustRelease(t.granted(req))
	}
	t.onlyNotice(w, t.granted(req).token)
}

func watchKeepsGrant(t *T) {
	t.listens()
	req := forPlace(ask("a", t.units(40)), t.units(40))
	req.Once = true
	w := t.watch(req.LeaseID)
	earlier := t.granted(req)
	t.mustRelease(earlier)
	l := t.take("a", t.units(40))
	t.placed(req, 1)
	t.mustComplete(l, "done", t.units(40))
	t.onlyNotice(w, earlier.token)
}

func watchIgnoresExtend(t *T) {
	l := t.take("a", t.units(40))
	w := t.watchPlace(forPlace(ask("a", t.units(40)), t.units(40)), 1)
	t.quiet(w)
	for range 3 {
		t.mustExtend(l, t.units(80))
	}
	_, ok := told(w, t.Unit)
	t.want(!ok, "Extend caused a message")
}

func watchStops(t *T) {
	t.listens()
	req := forPlace(ask("a", t.units(40)), t.units(40))
	stopped, other := t.watch(req.LeaseID), t.watch(req.LeaseID)
	stopped.Stop()
	stopped.Stop()
	l := t.granted(req)
	t.mustTell(other, req)
	notice, ok := told(stopped, t.Unit)
	t.want(!ok, "a watch that was stopped delivers a notice of token %d", notice.Token)
	t.mustRelease(l)
	req.LeaseID = lockinfo.NewLeaseID()
	again := t.watch(req.LeaseID)
	t.granted(req)
	t.mustTell(again, req)
	t.must("Close", "", t.Engine.Close())
	again.Stop()
	for _, w := range []driver.Watch{stopped, again} {
		select {
		case _, open := <-w.C():
			t.want(open, "C is closed after Stop and Close")
		default:
		}
	}
}
