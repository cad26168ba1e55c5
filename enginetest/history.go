package enginetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func historyRequirements() []Requirement {
	return []Requirement{
		{"HistoryTellsOfLease", "", canRemember, historyOfLease,
			"History must have one event for a grant and one for a release, with mode, token and whole holder"},
		{"HistoryTellsOfModes", "", both(canRemember, canShare, canCount), historyOfModes,
			"an event must say the mode, and of a semaphore the limit and the permits"},
		{"HistoryTellsOfExpiry", "", canRemember, historyOfExpiry,
			"whoever notices that a lease expired must write that down, once: the next Acquire, or History"},
		{"HistoryTellsOfLoss", "", canRemember, historyOfLoss,
			"a release with Lost must be written as lost, and change nothing else"},
		{"HistoryTellsOfHandOver", "I7", both(canRemember, canQueue), historyOfHandOver,
			"a place must be written as queued, and then as handed over with how long it waited"},
		{"HistoryTellsOfLeaving", "I7", both(canRemember, canQueue), historyOfLeaving,
			"a place that ends without a lease must be written as given up, whoever notices that"},
		{"HistoryTellsOfRecordedPlaces", "", both(canRemember, canQueue, canRecord), historyOfRecordedPlaces,
			"the places that a record ends must be written as given up"},
		{"HistoryTellsOfComplete", "", both(canRemember, canRecord), historyOfComplete,
			"the end of a lease by Complete must be written as completed"},
		{"HistoryTellsOfBreak", "", both(canRemember, canBreak), historyOfBreak,
			"a lease that is broken, or what is kept closed of one, must be written as broken, with author and reason"},
		{"HistoryTellsOfAll", "", both(canRemember, canAcquireAll), historyOfAll,
			"AcquireAll must write an event for each name, and none if it is refused"},
		{"HistoryIgnoresRepeats", "I6", canRemember, historyOfRepeats,
			"a repeat, a renewal, a refusal, a failure and the end of KeepFor must not be written"},
		{"HistoryKeepsNamesApart", "", canRemember, historyKeepsNames,
			"a history must have the events of its own name only, and a name that was never used has none"},
		{"HistoryNamesEachEvent", "", canRemember, historyNamesEvents,
			"the ID of an event must be unique in the store, and made of 1 to 64 letters, digits, '-', '.' and ':'"},
		{"HistoryHidesLeaseIDs", "I4", canRemember, historyHidesIDs,
			"an event must not contain a lease ID"},
		{"HistorySaysWhen", "", canRemember, historySaysWhen,
			"an event must say how long ago it was written, and how long the lease lasted that it ends"},
		{"HistoryIsBounded", "I11", canRemember, historyIsBounded,
			"of one name the latest MaxHistory events of leases must be remembered, and no more"},
		{"HistoryKeepsBreaks", "", both(canRemember, canBreak), historyKeepsBreaks,
			"a break must be remembered for HistoryMemory, and the events of leases as well as of places, whatever the queue does"},
		{"HistoryIsForgotten", "I11", both(canRemember, inVirtualTime), historyIsForgotten,
			"an event must be remembered for HistoryMemory, and no longer"},
		{"HistoryIsOneForAllEngines", "", both(canRemember, hasJoin), historyIsOne,
			"every engine on the store must have the same events, with the same IDs, in the same order"},
		{"FeedTellsEvents", "", canRemember, func(t *T) { feedTells(t, t) },
			"a feed must begin with a gap, and then report each event as History has it, the events of a name in order"},
		{"FeedTellsEventsAcrossEngines", "", both(canRemember, hasJoin), func(t *T) { feedTells(t, t.join()) },
			"a feed must tell what other engines on the store do"},
		{"FeedStops", "", canRemember, feedStops,
			"once stop has returned no event may follow"},
	}
}

// RunHistory checks the engine of h against the requirements that need Capabilities.History. It is
// for an engine whose other requirements are checked without history.
func RunHistory(t *testing.T, h Harness) {
	runSome(t, h, func(r Requirement) bool {
		return slices.ContainsFunc(historyRequirements(), func(of Requirement) bool { return of.Name == r.Name })
	})
}

func canRemember(t *T) bool { return t.Features.Historian != nil }

// history returns the history of a name.
func (t *T) history(name string) []lockinfo.HistoryEvent {
	t.Helper()
	events, err := t.Features.Historian.History(t.Context(), name)
	t.must("History", name, err)
	return events
}

// of returns the event that a request must cause, without its times.
func of(kind lockinfo.HistoryKind, req driver.AcquireRequest) lockinfo.HistoryEvent {
	return lockinfo.HistoryEvent{Kind: kind, Name: req.Name, Mode: req.Mode, Holder: req.Holder}
}

// about returns an event of a lease, without its times.
func about(kind lockinfo.HistoryKind, l lease) lockinfo.HistoryEvent {
	e := of(kind, l.AcquireRequest)
	e.Token = l.token
	return e
}

// brokenBy returns the event of a lease that breakOf broke.
func brokenBy(l lease) lockinfo.HistoryEvent {
	e := about(lockinfo.HistoryBroken, l)
	e.Author, e.Reason = author, reason
	return e
}

// wrote fails the run unless the history of name consists of these events, and returns it.
func (t *T) wrote(name string, want ...lockinfo.HistoryEvent) []lockinfo.HistoryEvent {
	t.Helper()
	got := t.history(name)
	said, wanted := describeEvents(got), describeEvents(want)
	t.need(said == wanted, "history of %q:\n%s\nwant\n%s", name, said, wanted)
	return got
}

// describeEvents returns events as text, one per line.
func describeEvents(events []lockinfo.HistoryEvent) (text string) {
	for _, e := range events {
		text += describeEvent(e) + "\n"
	}
	return text
}

// heldAndReleased returns the events of leases that were acquired and released, one after the
// other.
func heldAndReleased(leases ...lease) (events []lockinfo.HistoryEvent) {
	for _, l := range leases {
		events = append(events, about(lockinfo.HistoryAcquired, l), about(lockinfo.HistoryReleased, l))
	}
	return events
}

// describeEvent returns an event as text, without its ID and its times.
func describeEvent(e lockinfo.HistoryEvent) string {
	return fmt.Sprintf("%s %q: %s, token %d, %+v, by %q: %q",
		e.Kind, e.Name, e.Mode, e.Token, e.Holder, e.Author, e.Reason)
}

// lasted fails the run unless d is between least and most.
func (t *T) lasted(what string, d, least, most time.Duration) {
	t.Helper()
	t.want(d >= least-early && d <= most+t.slack(), "%s = %s, want %s to %s", what, d, least, most)
}
