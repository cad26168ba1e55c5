package enginetest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func historyRequirements() []Requirement {
	return []Requirement{{
		Name:        "HistoryTellsOfLease",
		Explanation: "History must have one event for a grant and one for a release, with mode, token and whole holder",
		Needs:       canRemember,
		Run:         historyOfLease,
	}, {
		Name:        "HistoryTellsOfModes",
		Explanation: "an event must say the mode, and of a semaphore the limit and the permits",
		Needs:       both(canRemember, canShare, canCount),
		Run:         historyOfModes,
	}, {
		Name:        "HistoryTellsOfExpiry",
		Explanation: "whoever notices that a lease expired must write that down, once: the next Acquire, or History",
		Needs:       canRemember,
		Run:         historyOfExpiry,
	}, {
		Name:        "HistoryTellsOfLoss",
		Explanation: "a release with Lost must be written as lost, and change nothing else",
		Needs:       canRemember,
		Run:         historyOfLoss,
	}, {
		Name:        "HistoryTellsOfHandOver",
		Explanation: "a place must be written as queued, and then as handed over with how long it waited",
		Invariant:   "I7",
		Needs:       both(canRemember, canQueue),
		Run:         historyOfHandOver,
	}, {
		Name:        "HistoryTellsOfLeaving",
		Explanation: "a place that ends without a lease must be written as left, whoever notices that",
		Invariant:   "I7",
		Needs:       both(canRemember, canQueue),
		Run:         historyOfLeaving,
	}, {
		Name:        "HistoryTellsOfRecordedPlaces",
		Explanation: "the places that a record ends must be written as left",
		Needs:       both(canRemember, canQueue, canRecord),
		Run:         historyOfRecordedPlaces,
	}, {
		Name:        "HistoryTellsOfComplete",
		Explanation: "the end of a lease by Complete must be written as completed",
		Needs:       both(canRemember, canRecord),
		Run:         historyOfComplete,
	}, {
		Name:        "HistoryTellsOfBreak",
		Explanation: "a lease that is broken, or what is kept closed of one, must be written as broken, with author and reason",
		Needs:       both(canRemember, canBreak),
		Run:         historyOfBreak,
	}, {
		Name:        "HistoryTellsOfAll",
		Explanation: "AcquireAll must write an event for each name, and none if it is refused",
		Needs:       both(canRemember, canAcquireAll),
		Run:         historyOfAll,
	}, {
		Name:        "HistoryIgnoresRepeats",
		Explanation: "a repeat, a renewal, a refusal, a failure and the end of KeepFor must not be written",
		Invariant:   "I6",
		Needs:       canRemember,
		Run:         historyOfRepeats,
	}, {
		Name:        "HistoryKeepsNamesApart",
		Explanation: "a history must have the events of its own name only, and a name that was never used has none",
		Needs:       canRemember,
		Run:         historyKeepsNames,
	}, {
		Name:        "HistoryNamesEachEvent",
		Explanation: "the ID of an event must be unique in the store, and made of 1 to 64 letters, digits, '-', '.' and ':'",
		Needs:       canRemember,
		Run:         historyNamesEvents,
	}, {
		Name:        "HistoryHidesLeaseIDs",
		Explanation: "an event must not contain a lease ID",
		Invariant:   "I4",
		Needs:       canRemember,
		Run:         historyHidesIDs,
	}, {
		Name:        "HistorySaysWhen",
		Explanation: "an event must say how long ago it was written, and how long the lease lasted that it ends",
		Needs:       canRemember,
		Run:         historySaysWhen,
	}, {
		Name:        "HistoryIsBounded",
		Explanation: "of one name the latest MaxHistory events must be remembered, and no more",
		Invariant:   "I11",
		Needs:       canRemember,
		Run:         historyIsBounded,
	}, {
		Name:        "HistoryIsForgotten",
		Explanation: "an event must be remembered for HistoryMemory, and no longer",
		Invariant:   "I11",
		Needs:       both(canRemember, inVirtualTime),
		Run:         historyIsForgotten,
	}, {
		Name:        "HistoryIsOneForAllEngines",
		Explanation: "every engine on the store must have the same events, with the same IDs, in the same order",
		Needs:       both(canRemember, hasJoin),
		Run:         historyIsOne,
	}, {
		Name:        "FeedTellsEvents",
		Explanation: "a feed must begin with a gap, and then tell each event as History has it, those of a name in order",
		Needs:       canRemember,
		Run:         func(t *T) { feedTells(t, t) },
	}, {
		Name:        "FeedTellsEventsAcrossEngines",
		Explanation: "a feed must tell what other engines on the store do",
		Needs:       both(canRemember, hasJoin),
		Run:         func(t *T) { feedTells(t, t.join()) },
	}, {
		Name:        "FeedStops",
		Explanation: "once stop has returned no event may be told",
		Needs:       canRemember,
		Run:         feedStops,
	}}
}

// RunHistory checks the engine of h against the requirements that need
// Capabilities.History: for an engine whose other requirements are checked without it.
func RunHistory(t *testing.T, h Harness) {
	runSome(t, h, func(r Requirement) bool {
		return slices.ContainsFunc(historyRequirements(), func(of Requirement) bool { return of.Name == r.Name })
	})
}

func canRemember(t *T) bool { return t.Features.Historian != nil }

// history returns the history of a name.
func (t *T) history(name string) []driver.Event {
	t.Helper()
	events, err := t.Features.Historian.History(t.Context(), name)
	if err != nil {
		t.Fatalf("History(%q): %v", name, err)
	}
	return events
}

// of returns what an event of a request has to say, but for its times.
func of(kind driver.EventKind, req driver.AcquireRequest) driver.Event {
	return driver.Event{
		Kind: kind, Name: req.Name, Mode: req.Mode, Limit: req.Limit, Permits: req.Permits, Holder: req.Holder,
	}
}

// about is of for an event of a lease.
func about(kind driver.EventKind, l lease) driver.Event {
	e := of(kind, l.AcquireRequest)
	e.Token = l.token
	return e
}

// brokenBy is about for a lease that was broken as by breakOf.
func brokenBy(l lease) driver.Event {
	e := about(driver.EventBroken, l)
	e.Author, e.Reason = author, reason
	return e
}

// wrote fails the run unless the history of name is exactly that, and returns it.
func (t *T) wrote(name string, want ...driver.Event) []driver.Event {
	t.Helper()
	got := t.history(name)
	said := make([]string, len(got))
	for i, e := range got {
		said[i] = describeEvent(e)
	}
	wanted := make([]string, len(want))
	for i, e := range want {
		wanted[i] = describeEvent(e)
	}
	if !slices.Equal(said, wanted) {
		t.Fatalf("history of %q:\n%s\nwant\n%s", name, strings.Join(said, "\n"), strings.Join(wanted, "\n"))
	}
	return got
}

// describeEvent says what an event has to say, but for its ID and its times.
func describeEvent(e driver.Event) string {
	return fmt.Sprintf("%s %q: %s %d/%d token %d, %+v, by %q: %q",
		e.Kind, e.Name, e.Mode, e.Permits, e.Limit, e.Token, e.Holder, e.Author, e.Reason)
}

// lasted fails the run unless d is at least least and at most most.
func (t *T) lasted(what string, d, least, most time.Duration) {
	t.Helper()
	if d < least-early || d > most+t.slack() {
		t.Errorf("%s = %s, want %s to %s", what, d, least, most)
	}
}

func historyOfLease(t *T) {
	req := ask("a", t.units(40))
	req.Holder = wholeHolder()
	l := t.grant(req)
	t.wrote("a", about(driver.EventAcquired, l))
	t.mustRelease(l)
	next := t.take("a", t.units(40))
	t.mustKeep(next, t.units(1))
	t.wrote("a", about(driver.EventAcquired, l), about(driver.EventReleased, l),
		about(driver.EventAcquired, next), about(driver.EventReleased, next))
}

func historyOfModes(t *T) {
	shared := t.grant(askShared("s", t.units(40)))
	t.mustRelease(shared)
	t.wrote("s", about(driver.EventAcquired, shared), about(driver.EventReleased, shared))
	some := t.grant(askPermits("n", 2, 5, t.units(40)))
	t.mustRelease(some)
	t.wrote("n", about(driver.EventAcquired, some), about(driver.EventReleased, some))
	whole := t.take("d", t.units(40))
	if err := t.Features.Downgrader.Downgrade(t.Context(), driver.DowngradeRequest{Name: "d", LeaseID: whole.LeaseID}); err != nil {
		t.Fatalf("Downgrade: %v", err)
	}
	t.mustRelease(whole)
	part := about(driver.EventReleased, whole)
	part.Mode = driver.Shared
	t.wrote("d", about(driver.EventAcquired, whole), part)
}

func historyOfExpiry(t *T) {
	first, second := t.take("a", t.units(1)), t.take("b", t.units(1))
	time.Sleep(t.units(2))
	next := t.take("a", t.units(40))
	seen := time.Since(first.sent)
	events := t.wrote("a", about(driver.EventAcquired, first), about(driver.EventExpired, first), about(driver.EventAcquired, next))
	t.lasted("Held of a lease that expired", events[1].Held, t.units(1), seen)
	t.wrote("b", about(driver.EventAcquired, second), about(driver.EventExpired, second))
	t.wrote("b", about(driver.EventAcquired, second), about(driver.EventExpired, second))
	t.lost("Release of a lease that expired", t.release(second))
	t.wrote("b", about(driver.EventAcquired, second), about(driver.EventExpired, second))
}

func historyOfLoss(t *T) {
	giveUp := func(l lease, keepFor time.Duration) error {
		return t.Engine.Release(t.Context(), driver.ReleaseRequest{Name: l.Name, LeaseID: l.LeaseID, KeepFor: keepFor, Lost: true})
	}
	l := t.take("a", t.units(40))
	if err := giveUp(l, 0); err != nil {
		t.Fatalf("Release with Lost: %v", err)
	}
	t.free("a")
	t.lost("Release with Lost again", giveUp(l, 0))
	next := t.take("a", t.units(40))
	t.lost("Release with Lost of a lease that is over", giveUp(l, 0))
	t.live(next)
	if err := giveUp(next, t.units(40)); err != nil {
		t.Fatalf("Release with Lost and KeepFor: %v", err)
	}
	t.refused("a")
	t.wrote("a", about(driver.EventAcquired, l), about(driver.EventLost, l),
		about(driver.EventAcquired, next), about(driver.EventLost, next))
}

func historyOfHandOver(t *T) {
	l := t.take("a", t.units(40))
	asked := time.Now()
	req := forPlace(ask("a", t.units(40)), t.units(40))
	req.Holder = wholeHolder()
	t.placed(req, 1)
	t.wrote("a", about(driver.EventAcquired, l), of(driver.EventQueued, req))
	time.Sleep(t.units(1))
	t.placed(req, 1) // a repeat, by which it waits no less
	second := t.queue("a", 2)
	t.mustRelease(l)
	waited := time.Since(asked)
	next := t.handed(req)
	events := t.wrote("a", about(driver.EventAcquired, l), of(driver.EventQueued, req), of(driver.EventQueued, second),
		about(driver.EventReleased, l), about(driver.EventHandedOver, next))
	t.lasted("Waited of a lease that was handed over", events[4].Waited, t.units(1), waited)
	t.mustRelease(next)
	last := t.handed(second)
	t.mustRelease(last)
	events = t.wrote("a", about(driver.EventAcquired, l), of(driver.EventQueued, req), of(driver.EventQueued, second),
		about(driver.EventReleased, l), about(driver.EventHandedOver, next),
		about(driver.EventReleased, next), about(driver.EventHandedOver, last), about(driver.EventReleased, last))
	t.lasted("Held of a lease that was handed over", events[5].Held, 0, t.slack())
}

func historyOfLeaving(t *T) {
	l := t.take("a", t.units(40))
	first := t.queue("a", 1)
	second := t.queueFor("a", 2, t.units(1))
	t.mustCancel(first)
	asked := time.Now()
	time.Sleep(t.units(2))
	t.refused("a")
	events := t.wrote("a", about(driver.EventAcquired, l), of(driver.EventQueued, first), of(driver.EventQueued, second),
		of(driver.EventLeft, first), of(driver.EventLeft, second))
	t.lasted("Waited of a place that was given up", events[3].Waited, 0, t.slack())
	t.lasted("Waited of a place that is over", events[4].Waited, t.units(1), time.Since(asked))
}

func historyOfRecordedPlaces(t *T) {
	l := t.take("a", t.units(40))
	once := forPlace(ask("a", t.units(40)), t.units(40))
	once.Once = true
	t.placed(once, 1)
	t.mustComplete(l, "result", t.units(40))
	t.wrote("a", about(driver.EventAcquired, l), of(driver.EventQueued, once), about(driver.EventCompleted, l), of(driver.EventLeft, once))
}

func historyOfComplete(t *T) {
	l := t.take("a", t.units(40))
	t.mustComplete(l, "result", t.units(40))
	t.mustComplete(l, "result", t.units(40))
	if _, err := t.Features.Recorder.Forget(t.Context(), "a"); err != nil {
		t.Fatalf("Forget: %v", err)
	}
	t.wrote("a", about(driver.EventAcquired, l), about(driver.EventCompleted, l))
}

func historyOfBreak(t *T) {
	l := t.take("a", t.units(40))
	req := breakOf(l)
	t.breaksOnly(req, l)
	t.breaksOnly(req, l)
	kept := t.take("a", t.units(40))
	t.mustKeep(kept, t.units(40))
	t.breaksOnly(closed(breakOf(kept)), kept)
	t.wrote("a", about(driver.EventAcquired, l), brokenBy(l),
		about(driver.EventAcquired, kept), about(driver.EventReleased, kept), brokenBy(kept))
}

func historyOfAll(t *T) {
	reqs := askTagged(t.units(40), "one", "two")
	reply, err := t.Features.AllAcquirer.AcquireAll(t.Context(), reqs)
	if err != nil || reply.Outcome != driver.Granted || len(reply.Tokens) != 2 {
		t.Fatalf("AcquireAll: %+v, %v", reply, err)
	}
	again := askTagged(t.units(40), "three", "two")
	if reply, err := t.Features.AllAcquirer.AcquireAll(t.Context(), again); err != nil || reply.Outcome != driver.Held {
		t.Fatalf("AcquireAll with a name that is held: %+v, %v", reply, err)
	}
	for i, req := range reqs {
		t.wrote(req.Name, about(driver.EventAcquired, lease{AcquireRequest: req, token: reply.Tokens[i]}))
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
	if _, err := t.Engine.Acquire(t.Context(), tooFar); err == nil {
		t.Fatal("Acquire with a MinToken that is too far ahead: no error")
	}
	other := l
	other.LeaseID = driver.NewLeaseID()
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
	t.wrote("a", about(driver.EventAcquired, l), about(driver.EventReleased, l))
	t.wrote("b")
}

func historyKeepsNames(t *T) {
	var all []lease
	for _, name := range []string{"a", "A", "{a}", "a b/ключ*", strings.Repeat("n", 512)} {
		t.wrote(name)
		l := t.take(name, t.units(40))
		t.wrote(name, about(driver.EventAcquired, l))
		all = append(all, l)
	}
	for _, l := range all {
		t.mustRelease(l)
		t.wrote(l.Name, about(driver.EventAcquired, l), about(driver.EventReleased, l))
	}
}

// eventID is what the ID of an event looks like.
var eventID = regexp.MustCompile(`^[A-Za-z0-9.:-]{1,64}$`)

func historyNamesEvents(t *T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "b", "{a}"} {
		for range 3 {
			t.mustRelease(t.take(name, t.units(40)))
		}
		for _, e := range t.history(name) {
			if !eventID.MatchString(e.ID) || seen[e.ID] {
				t.Errorf("ID %q: bad or used twice", e.ID)
			}
			seen[e.ID] = true
		}
	}
}

func historyHidesIDs(t *T) {
	ids := []driver.LeaseID{}
	l := t.take("a", t.units(40))
	ids = append(ids, l.LeaseID)
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
			if strings.Contains(fmt.Sprintf("%+v", e), string(id)) {
				t.Errorf("event %+v contains a lease ID", e)
			}
		}
	}
}

func historySaysWhen(t *T) {
	l := t.take("a", t.units(40))
	time.Sleep(t.units(2))
	t.mustRelease(l)
	held := time.Since(l.sent)
	time.Sleep(t.units(1))
	events := t.wrote("a", about(driver.EventAcquired, l), about(driver.EventReleased, l))
	t.lasted("Held", events[1].Held, t.units(2), held)
	t.lasted("Ago of the grant", events[0].Ago, t.units(3), time.Since(l.sent))
	t.lasted("Ago of the release", events[1].Ago, t.units(1), time.Since(l.sent)-t.units(2))
	if e := events[0]; e.Held != 0 || e.Waited != 0 || events[1].Waited != 0 {
		t.Errorf("a lease of nobody who waited: %+v", events)
	}
}

func historyIsBounded(t *T) {
	var want []driver.Event
	for range driver.MaxHistory/2 + 3 {
		l := t.take("a", t.units(40))
		t.mustRelease(l)
		want = append(want, about(driver.EventAcquired, l), about(driver.EventReleased, l))
	}
	l := t.take("a", t.units(40))
	want = append(want, about(driver.EventAcquired, l))
	t.wrote("a", want[len(want)-driver.MaxHistory:]...)
}

func historyIsForgotten(t *T) {
	l := t.take("a", 3*driver.HistoryMemory)
	time.Sleep(driver.HistoryMemory - t.slack())
	t.wrote("a", about(driver.EventAcquired, l))
	t.mustRelease(l)
	time.Sleep(t.units(1))
	t.wrote("a", about(driver.EventReleased, l))
	time.Sleep(driver.HistoryMemory)
	t.wrote("a")
}

func historyIsOne(t *T) {
	other := t.join()
	t.mustRelease(t.take("a", t.units(40)))
	other.mustRelease(other.take("a", t.units(40)))
	t.take("a", t.units(40))
	mine, theirs := t.history("a"), other.history("a")
	if len(mine) != 5 || len(theirs) != 5 {
		t.Fatalf("%d and %d events, want 5", len(mine), len(theirs))
	}
	for i, e := range mine {
		if e.ID != theirs[i].ID || describeEvent(e) != describeEvent(theirs[i]) {
			t.Errorf("event %d is %+v here and %+v there", i, e, theirs[i])
		}
	}
}

// A feed is what an engine tells of events.
type feed struct {
	events chan driver.Event
	seen   map[string]bool // IDs
	stop   func()
}

// feed registers for events, and waits until the engine listens.
func (t *T) feed() *feed {
	t.Helper()
	f := &feed{events: make(chan driver.Event, 1000), seen: map[string]bool{}}
	f.stop = t.Features.Historian.OnEvent(func(e driver.Event) { f.events <- e })
	t.Cleanup(f.stop)
	select {
	case e := <-f.events:
		if e.Kind != driver.EventGap {
			t.Fatalf("a feed begins with %+v, want a gap", e)
		}
		if e.ID != "" || e.Name != "" || e.Token != 0 {
			t.Errorf("a gap that says %+v", e)
		}
	case <-time.After(t.units(8)):
		t.Fatalf("a feed is silent for %s, want a gap as soon as it listens", t.units(8))
	}
	return f
}

// feeds fails the run unless every event of want is told soon, in that order, and none
// of another name than want has. An event may come twice.
func (t *T) feeds(f *feed, want []driver.Event) {
	t.Helper()
	for limit := time.After(t.units(8)); len(want) > 0; {
		select {
		case e := <-f.events:
			switch {
			case e.Kind == driver.EventGap, f.seen[e.ID]:
			case e.ID == want[0].ID && describeEvent(e) == describeEvent(want[0]):
				want = want[1:]
			default:
				t.Errorf("a feed tells of\n%s %s\nwant\n%s %s", e.ID, describeEvent(e), want[0].ID, describeEvent(want[0]))
				return
			}
			if f.seen[e.ID] = true; e.Ago < 0 || e.Ago > t.units(8) {
				t.Errorf("event %s: Ago %s", e.ID, e.Ago)
			}
		case <-limit:
			t.Errorf("a feed lacks %s", describeEvent(want[0]))
			return
		}
	}
}

// feedTells checks what t hears of what other does.
func feedTells(t, other *T) {
	before := other.take("a", t.units(80))
	f := t.feed()
	other.mustRelease(before)
	req := ask("a", t.units(80))
	req.Holder = wholeHolder()
	l := other.grant(req)
	if canQueue(t) {
		next := other.queue("a", 1)
		other.mustRelease(l)
		other.mustRelease(other.handed(next))
	}
	t.feeds(f, t.history("a")[1:])
	b := other.take("b", t.units(80))
	if canBreak(t) {
		other.mustBreak(breakOf(b))
	}
	t.feeds(f, t.history("b"))
}

func feedStops(t *T) {
	stopped, kept := t.feed(), t.feed()
	stopped.stop()
	stopped.stop()
	for len(stopped.events) > 0 {
		<-stopped.events
	}
	t.take("a", t.units(40))
	t.feeds(kept, t.history("a"))
	time.Sleep(t.slack())
	if len(stopped.events) > 0 {
		t.Errorf("told of %+v after stop", <-stopped.events)
	}
}
