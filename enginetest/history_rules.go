package enginetest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func historyOfLease(t *T) {
	l := t.grant(t.askWhole("a", t.units(40)))
	t.wrote("a", about(lockinfo.HistoryAcquired, l))
	t.mustRelease(l)
	next := t.take("a", t.units(40))
	t.mustKeep(next, t.units(1))
	t.wrote("a", heldAndReleased(l, next)...)
}

func historyOfModes(t *T) {
	shared := t.grant(askShared("s", t.units(40)))
	t.mustRelease(shared)
	t.wrote("s", heldAndReleased(shared)...)
	some := t.grant(askPermits("n", 2, 5, t.units(40)))
	t.mustRelease(some)
	t.wrote("n", heldAndReleased(some)...)
	whole := t.take("d", t.units(40))
	t.mustDowngrade(whole)
	t.mustRelease(whole)
	events := heldAndReleased(whole)
	events[1].Mode = lockinfo.Shared
	t.wrote("d", events...)
}

// extended acquires a lease of TTL from, of a name that begins with prefix, and extends it to TTL
// to. It tries another name if the lease expires in between, because the machine may pause.
func (t *T) extended(prefix string, from, to time.Duration) lease {
	t.Helper()
	for i := range 20 {
		l := t.take(fmt.Sprint(prefix, i), from)
		if err := t.extend(l, to); err == nil {
			return l
		} else if !errors.Is(err, driver.ErrLost) || time.Since(l.sent) < from {
			t.Fatalf("Extend(%q): %v", l.Name, err)
		}
	}
	t.Fatalf("a lease of %s was lost before it could be extended, 20 times", from)
	return lease{}
}

func historyOfExpiry(t *T) {
	first, second := t.take("a", t.units(1)), t.take("b", t.units(1))
	long := t.extended("c", t.units(1), t.units(2))
	renewed := time.Since(long.sent)
	time.Sleep(t.units(4))
	next := t.take("a", t.units(40))
	events := t.wrote("a", about(lockinfo.HistoryAcquired, first), about(lockinfo.HistoryExpired, first), about(lockinfo.HistoryAcquired, next))
	t.lasted("Held of a lease that expired", events[1].Held, t.units(1), t.units(1))
	t.lasted("Ago of a lease that expired", events[1].Ago, t.units(3), time.Since(first.sent)-t.units(1))
	events = t.wrote(long.Name, about(lockinfo.HistoryAcquired, long), about(lockinfo.HistoryExpired, long))
	t.lasted("Held of a renewed lease that expired", events[1].Held, t.units(2), renewed+t.units(2))
	t.lasted("Ago of a renewed lease that expired", events[1].Ago, t.units(2), time.Since(long.sent)-t.units(2))
	t.wrote("b", about(lockinfo.HistoryAcquired, second), about(lockinfo.HistoryExpired, second))
	t.wrote("b", about(lockinfo.HistoryAcquired, second), about(lockinfo.HistoryExpired, second))
	t.lost("Release of a lease that expired", t.release(second))
	t.wrote("b", about(lockinfo.HistoryAcquired, second), about(lockinfo.HistoryExpired, second))
}

func historyOfLoss(t *T) {
	giveUp := func(l lease, keepFor time.Duration) error {
		return t.end(l, driver.ReleaseRequest{KeepFor: keepFor, Lost: true})
	}
	l := t.take("a", t.units(40))
	t.must("Release with Lost", "a", giveUp(l, 0))
	t.free("a")
	t.lost("Release with Lost again", giveUp(l, 0))
	next := t.take("a", t.units(40))
	t.lost("Release with Lost of a lease that has ended", giveUp(l, 0))
	t.live(next)
	t.must("Release with Lost and KeepFor", "a", giveUp(next, t.units(40)))
	t.refused("a")
	t.wrote("a", about(lockinfo.HistoryAcquired, l), about(lockinfo.HistoryLost, l),
		about(lockinfo.HistoryAcquired, next), about(lockinfo.HistoryLost, next))
}

func historyOfHandOver(t *T) {
	l := t.take("a", t.units(40))
	asked := time.Now()
	req := forPlace(ask("a", t.units(40)), t.units(40))
	req.Holder = t.wholeHolder()
	t.placed(req, 1)
	t.wrote("a", about(lockinfo.HistoryAcquired, l), of(lockinfo.HistoryQueued, req))
	time.Sleep(t.units(1))
	t.placed(req, 1) // a repeat, which does not change since when it waits
	second := t.queue("a", 2)
	released := time.Now()
	t.mustRelease(l)
	waited := time.Since(asked)
	next := t.handed(req)
	events := t.wrote("a", about(lockinfo.HistoryAcquired, l), of(lockinfo.HistoryQueued, req), of(lockinfo.HistoryQueued, second),
		about(lockinfo.HistoryReleased, l), about(lockinfo.HistoryHandedOver, next))
	t.lasted("Waited of a lease that was handed over", events[4].Waited, t.units(1), waited)
	t.mustRelease(next)
	held := time.Since(released)
	last := t.handed(second)
	t.mustRelease(last)
	events = t.wrote("a", about(lockinfo.HistoryAcquired, l), of(lockinfo.HistoryQueued, req), of(lockinfo.HistoryQueued, second),
		about(lockinfo.HistoryReleased, l), about(lockinfo.HistoryHandedOver, next),
		about(lockinfo.HistoryReleased, next), about(lockinfo.HistoryHandedOver, last), about(lockinfo.HistoryReleased, last))
	t.lasted("Held of a lease that was handed over", events[5].Held, 0, held)
}

func historyOfLeaving(t *T) {
	l := t.take("a", t.units(40))
	queued := time.Now()
	first := t.queue("a", 1)
	second := t.queueFor("a", 2, t.units(1))
	t.mustCancel(first)
	waited := time.Since(queued)
	time.Sleep(t.units(2))
	t.refused("a")
	events := t.wrote("a", about(lockinfo.HistoryAcquired, l), of(lockinfo.HistoryQueued, first), of(lockinfo.HistoryQueued, second),
		of(lockinfo.HistoryGaveUp, first), of(lockinfo.HistoryGaveUp, second))
	t.lasted("Waited of a place that was given up", events[3].Waited, 0, waited)
	t.lasted("Waited of a place that has ended", events[4].Waited, t.units(1), time.Since(queued))
}

func historyOfRecordedPlaces(t *T) {
	l := t.take("a", t.units(40))
	once := forPlace(ask("a", t.units(40)), t.units(40))
	once.Once = true
	t.placed(once, 1)
	t.mustComplete(l, "result", t.units(40))
	t.wrote("a", about(lockinfo.HistoryAcquired, l), of(lockinfo.HistoryQueued, once), about(lockinfo.HistoryCompleted, l), of(lockinfo.HistoryGaveUp, once))
}

func historyOfComplete(t *T) {
	l := t.take("a", t.units(40))
	t.mustComplete(l, "result", t.units(40))
	t.mustComplete(l, "result", t.units(40))
	t.forget("a")
	t.wrote("a", about(lockinfo.HistoryAcquired, l), about(lockinfo.HistoryCompleted, l))
}

func historyOfBreak(t *T) {
	l := t.take("a", t.units(40))
	req := breakOf(l)
	t.breaksOnly(req, l)
	t.breaksOnly(req, l)
	kept := t.take("a", t.units(40))
	t.mustKeep(kept, t.units(40))
	t.breaksOnly(closed(breakOf(kept)), kept)
	t.wrote("a", about(lockinfo.HistoryAcquired, l), brokenBy(l),
		about(lockinfo.HistoryAcquired, kept), about(lockinfo.HistoryReleased, kept), brokenBy(kept))
}

func historyOfAll(t *T) {
	leases := t.acquiredAll(askTagged(t.units(40), "one", "two"))
	again := askTagged(t.units(40), "three", "two")
	t.notAllTaken(again, driver.Held, 1)
	for _, l := range leases {
		t.wrote(l.Name, about(lockinfo.HistoryAcquired, l))
	}
	t.wrote(again[0].Name)
}

func historyOfRepeats(t *T) {
	l := t.take("a", t.units(40))
	t.grant(l.AcquireRequest)
	t.mustExtend(l, t.units(80))
	t.refused("a")
	tooFar := ask("b", t.units(8))
	tooFar.MinToken = driver.MaxToken
	t.acquireFails("Acquire with a MinToken that is too far ahead", tooFar, driver.ErrInvalid)
	other := l
	other.LeaseID = lockinfo.NewLeaseID()
	t.lost("Extend of an unknown lease", t.extend(other, t.units(80)))
	t.lost("Release of an unknown lease", t.release(other))
	t.mustCancel(ask("b", t.units(8)))
	if canQueue(t) {
		t.lost("Refresh of an unknown place", t.refresh(forPlace(ask("b", t.units(8)), t.units(8)), t.units(8)).Err)
	}
	t.mustKeep(l, t.units(1))
	t.lost("Release again", t.release(l))
	time.Sleep(t.units(2))
	t.inspect("a")
	t.wrote("a", heldAndReleased(l)...)
	t.wrote("b")
}

func historyKeepsNames(t *T) {
	var all []lease
	for _, name := range []string{"a", "A", "{a}", "a b/ключ*", strings.Repeat("n", 512)} {
		t.wrote(name)
		l := t.take(name, t.units(40))
		t.wrote(name, about(lockinfo.HistoryAcquired, l))
		all = append(all, l)
	}
	for _, l := range all {
		t.mustRelease(l)
		t.wrote(l.Name, heldAndReleased(l)...)
	}
}

// eventID matches the ID of an event.
var eventID = regexp.MustCompile(`^[A-Za-z0-9.:-]{1,64}$`)

func historyNamesEvents(t *T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "b", "{a}"} {
		for range 3 {
			t.mustRelease(t.take(name, t.units(40)))
		}
		for _, e := range t.history(name) {
			t.want(eventID.MatchString(e.ID) && !seen[e.ID], "ID %q: bad or used twice", e.ID)
			seen[e.ID] = true
		}
	}
}

func historyHidesIDs(t *T) {
	l := t.take("a", t.units(40))
	ids := []lockinfo.LeaseID{l.LeaseID}
	if canQueue(t) {
		first, second := t.queue("a", 1), t.queue("a", 2)
		ids = append(ids, first.LeaseID, second.LeaseID)
		t.mustCancel(second)
	}
	if canBreak(t) {
		req := breakOf(l)
		ids = append(ids, req.ID)
		t.mustBreak(req)
	}
	for _, e := range t.history("a") {
		for _, id := range ids {
			t.want(!strings.Contains(fmt.Sprintf("%+v", e), string(id)), "event %+v contains a lease ID", e)
		}
	}
}

func historySaysWhen(t *T) {
	l := t.take("a", t.units(40))
	time.Sleep(t.units(2))
	t.mustRelease(l)
	held := time.Since(l.sent)
	time.Sleep(t.units(1))
	events := t.wrote("a", heldAndReleased(l)...)
	t.lasted("Held", events[1].Held, t.units(2), held)
	t.lasted("Ago of the grant", events[0].Ago, t.units(3), time.Since(l.sent))
	t.lasted("Ago of the release", events[1].Ago, t.units(1), time.Since(l.sent)-t.units(2))
	e := events[0]
	t.want(e.Held == 0 && e.Waited == 0 && events[1].Waited == 0, "a lease of nobody who waited: %+v", events)
}

func historyIsBounded(t *T) {
	var released []lease
	for range driver.MaxHistory/2 + 3 {
		l := t.take("a", t.units(40))
		t.mustRelease(l)
		released = append(released, l)
	}
	want := append(heldAndReleased(released...), about(lockinfo.HistoryAcquired, t.take("a", t.units(40))))
	t.wrote("a", want[len(want)-driver.MaxHistory:]...)
}

func historyKeepsBreaks(t *T) {
	l := t.take("a", t.units(40))
	t.breaksOnly(breakOf(l), l)
	for range driver.MaxHistory/2 + 3 {
		t.mustRelease(t.take("a", t.units(40)))
	}
	last := t.take("a", t.units(40))
	var crowd []lockinfo.HistoryEvent
	for canQueue(t) && len(crowd) < driver.MaxHistory+6 {
		p := t.queue("a", 1)
		t.mustCancel(p)
		crowd = append(crowd, of(lockinfo.HistoryQueued, p), of(lockinfo.HistoryGaveUp, p))
	}
	events := t.history("a")
	want := brokenBy(l)
	t.want(describeEvent(events[0]) == describeEvent(want),
		"after %d events of leases and %d of places the first is\n%s\nwant\n%s", driver.MaxHistory+7, len(crowd), describeEvent(events[0]), describeEvent(want))
	leases := 0
	for _, e := range events[1:] {
		if e.Kind.Begins() || e.Kind.Ends() {
			leases++
		}
	}
	t.want(leases == driver.MaxHistory && len(events) == 1+leases+min(len(crowd), driver.MaxHistory),
		"%d events, %d of leases; want %d of them, and of places, besides the break", len(events), leases, driver.MaxHistory)
	if !slices.ContainsFunc(events, func(e lockinfo.HistoryEvent) bool {
		return describeEvent(e) == describeEvent(about(lockinfo.HistoryAcquired, last))
	}) {
		t.Errorf("the latest grant is not there")
	}
}

func historyIsForgotten(t *T) {
	l := t.take("a", 3*driver.HistoryMemory)
	time.Sleep(driver.HistoryMemory - t.slack())
	t.wrote("a", about(lockinfo.HistoryAcquired, l))
	t.mustRelease(l)
	time.Sleep(t.units(1))
	t.wrote("a", about(lockinfo.HistoryReleased, l))
	time.Sleep(driver.HistoryMemory)
	t.wrote("a")
}

func historyIsOne(t *T) {
	other := t.join()
	t.mustRelease(t.take("a", t.units(40)))
	other.mustRelease(other.take("a", t.units(40)))
	t.take("a", t.units(40))
	mine, theirs := t.history("a"), other.history("a")
	t.need(len(mine) == 5 && len(theirs) == 5, "%d and %d events, want 5", len(mine), len(theirs))
	for i, e := range mine {
		t.want(e.ID == theirs[i].ID && describeEvent(e) == describeEvent(theirs[i]), "event %d is %+v here and %+v there", i, e, theirs[i])
	}
}
