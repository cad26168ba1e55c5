package enginetest

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func completeRequirements() []Requirement {
	return []Requirement{
		{"CompleteStoresRecordAndEndsLease", "", canRecord, completeStores,
			"Complete must store the record and end the lease in one step"},
		{"CompleteOfLostIsLost", "I4", canRecord, completeOfLost,
			"Complete must answer ErrLost, and neither store a record nor end a lease, if the lease is not live"},
		{"CompleteOfStaleOverwritesNothing", "I4", canRecord, completeOfStale,
			"Complete by an earlier holder must answer ErrLost and leave the successor's record"},
		{"CompleteTwiceIsOnce", "I6", canRecord, completeTwice,
			"a repeated Complete must not be an error and must change nothing"},
		{"CompleteReplacesRecord", "", canRecord, completeReplaces,
			"Complete must replace the record of an earlier holder, and its retention"},
		{"CompleteKeepsLease", "I4", canRecord, completeKeeps,
			"Complete with Keep must store the record of a live lease and leave the lease; a repeat after the lease must not find it as a completion"},
		{"CompleteHandsOver", "I7", both(canRecord, canQueue), completeHandsOver,
			"Complete must give up the places that asked for Once, and grant the lock to the next in the same step"},
		{"CompleteTellsWatches", "I7", both(canRecord, canQueue), completeTells,
			"Complete must tell the watches of the places that it gives up, and of those that it hands the lock"},
		{"TokensGrowOverComplete", "I2", canRecord, tokensGrowOverComplete,
			"a grant must carry a greater token than every earlier grant of the name that was completed"},
	}
}

func canRecord(t *T) bool { return t.Features.Recorder != nil }

// complete completes a lease and returns the engine's error.
func (t *T) complete(l lease, record string, retention time.Duration) error {
	return t.storeRecord(l, record, retention, false)
}

func (t *T) storeRecord(l lease, record string, retention time.Duration, keep bool) error {
	return t.Features.Recorder.Complete(t.Context(), driver.CompleteRequest{
		Name: l.Name, LeaseID: l.LeaseID, Record: []byte(record), Retention: retention, Keep: keep,
	})
}

// mustComplete completes a lease, which must succeed.
func (t *T) mustComplete(l lease, record string, retention time.Duration) {
	t.Helper()
	t.must("Complete", l.Name, t.complete(l, record, retention))
}

// keep stores a record without ending the lease, and returns the engine's error.
func (t *T) keep(l lease, record string) error {
	return t.storeRecord(l, record, t.units(40), true)
}

// done acquires a lease of name and completes it.
func (t *T) done(name, record string) lease {
	t.Helper()
	l := t.take(name, t.units(40))
	t.mustComplete(l, record, t.units(40))
	return l
}

// recall recalls the record of a name.
func (t *T) recall(name string) (driver.Record, bool) {
	t.Helper()
	r, found, err := t.Features.Recorder.Recall(t.Context(), name)
	t.must("Recall", name, err)
	return r, found
}

// recorded fails the run unless the name has this record, and returns how
// long it lasts.
func (t *T) recorded(name, record string) time.Duration {
	t.Helper()
	r, found := t.recall(name)
	t.need(found, "%q has no record", name)
	t.sameBytes("Recall", r.Data, record)
	return r.ExpiresIn
}

// unrecorded fails the run if the name has a record.
func (t *T) unrecorded(name string) {
	t.Helper()
	r, found := t.recall(name)
	t.need(!found && len(r.Data) == 0, "%q has a record of %d bytes, want none", name, len(r.Data))
}

func (t *T) sameBytes(what string, got []byte, want string) {
	t.Helper()
	t.want(string(got) == want, "%s: %d bytes that begin %.20q, want %d bytes that begin %.20q", what, len(got), got, len(want), want)
}

// forget forgets the record of a name.
func (t *T) forget(name string) (found bool) {
	t.Helper()
	found, err := t.Features.Recorder.Forget(t.Context(), name)
	t.must("Forget", name, err)
	return found
}

// askOnce returns a request with Once and its own lease ID.
func askOnce(name string, ttl time.Duration) driver.AcquireRequest {
	req := ask(name, ttl)
	req.Once = true
	return req
}

// mustBeRecorded makes one attempt whose reply must contain this record.
func (t *T) mustBeRecorded(req driver.AcquireRequest, record string) {
	t.Helper()
	reply := t.acquire(req)
	t.need(reply.Outcome == driver.Recorded && reply.Token == 0 && reply.Place == 0,
		"Acquire(%q): %s, token %d, place %d; want recorded", req.Name, outcome(reply), reply.Token, reply.Place)
	t.sameBytes("Acquire", reply.Record, record)
}

func completeStores(t *T) {
	l := t.take("a", t.units(40))
	t.mustComplete(l, "result", t.units(40))
	t.recorded("a", "result")
	t.free("a")
	t.lost("Extend after Complete", t.extend(l, t.units(40)))
	t.lost("Release after Complete", t.release(l))
	t.recorded("a", "result")
	if canShare(t) {
		first, second := t.grant(askShared("b", t.units(40))), t.grant(askShared("b", t.units(40)))
		t.mustComplete(first, "of one reader", t.units(40))
		t.live(second)
		t.lost("Extend after Complete", t.extend(first, t.units(40)))
	}
}

func completeOfLost(t *T) {
	expired := t.take("a", t.units(1))
	released := t.take("b", t.units(40))
	t.mustRelease(released)
	cancelled := t.take("c", t.units(40))
	t.mustCancel(cancelled.AcquireRequest)
	kept := t.take("d", t.units(40))
	t.mustKeep(kept, t.units(40))
	l := t.take("e", t.units(40))
	gone := []lease{expired, released, cancelled, kept, {AcquireRequest: ask("f", 0)}}
	time.Sleep(t.units(2))
	for _, l := range append(gone, near(l)...) {
		t.lost("Complete of a lease that is not live", t.complete(l, "zombie", t.units(40)))
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		t.unrecorded(name)
	}
	t.refused("d")
	t.live(l)
}

func completeOfStale(t *T) {
	stale := t.take("a", t.units(40))
	t.mustRelease(stale)
	next := t.take("a", t.units(40))
	t.lost("Complete by an earlier holder", t.complete(stale, "stale", t.units(40)))
	t.live(next)
	t.unrecorded("a")
	t.mustComplete(next, "right", t.units(40))
	t.lost("Complete by an earlier holder, after another", t.complete(stale, "stale", t.units(40)))
	t.recorded("a", "right")
}

func completeTwice(t *T) {
	l := t.take("a", t.units(40))
	t.mustComplete(l, "result", t.units(8))
	next := t.take("a", t.units(40))
	time.Sleep(t.units(1))
	t.mustComplete(l, "result", t.units(8))
	t.atMost("the record, after a repeat", t.recorded("a", "result"), t.units(7))
	t.live(next)
	t.forget("a")
	t.mayBeLost("Complete after Forget", "a", t.complete(l, "result", t.units(8)))
	t.unrecorded("a")
	t.live(next)
}

func completeReplaces(t *T) {
	first := t.take("a", t.units(40))
	t.mustComplete(first, "first", t.units(400))
	second := t.take("a", t.units(40))
	t.mustComplete(second, "second", t.units(8))
	t.atMost("the second record", t.recorded("a", "second"), t.units(8))
	t.mayBeLost("late repeat of Complete", "a", t.complete(first, "first", t.units(400)))
	t.recorded("a", "second")
}

// completeKeeps ends with repeats that must not be taken for the completion, because the lease did
// not end with their record.
func completeKeeps(t *T) {
	l := t.take("a", t.units(40))
	for range 2 {
		t.must("Complete with Keep", "a", t.keep(l, "begun"))
		t.recorded("a", "begun")
		t.live(l)
	}
	t.refused("a")
	t.mustComplete(l, "done", t.units(40))
	t.recorded("a", "done")
	t.free("a")
	_ = t.keep(l, "begun") // a late copy
	t.recorded("a", "done")

	l = t.take("b", t.units(40))
	t.must("Complete with Keep", "b", t.keep(l, "begun"))
	t.mustRelease(l)
	t.lost("Complete with Keep, after the lease", t.keep(l, "zombie"))
	t.lost("Complete after the lease, which had kept a record", t.complete(l, "zombie", t.units(40)))
	t.recorded("b", "begun")
	next := t.take("b", t.units(40))
	t.lost("Complete with Keep by an earlier holder", t.keep(l, "zombie"))
	t.live(next)
	t.recorded("b", "begun")
}

// onceBesides queues three requests with Once, and one without at the second place.
func onceBesides(t *T, name string) (once []driver.AcquireRequest, other driver.AcquireRequest) {
	t.Helper()
	for place := range 4 {
		req := forPlace(ask(name, t.units(40)), t.units(40))
		if req.Once = place != 1; req.Once {
			once = append(once, req)
		} else {
			other = req
		}
		t.placed(req, place+1)
	}
	return once, other
}

func completeHandsOver(t *T) {
	l := t.take("a", t.units(40))
	once, other := onceBesides(t, "a")
	t.mustComplete(l, "result", t.units(40))
	t.waiting("a")
	next := t.handed(other)
	t.above(l.token, next)
	for _, req := range once {
		t.lost("Refresh of a place that Complete gave up", t.refresh(req, t.units(40)).Err)
		t.mustBeRecorded(req, "result")
	}
	t.waiting("a")
	t.mustComplete(next, "next", t.units(40))
	t.recorded("a", "next")
}

func completeTells(t *T) {
	t.listens()
	l := t.take("a", t.units(40))
	once := forPlace(askOnce("a", t.units(40)), t.units(40))
	other := forPlace(ask("a", t.units(40)), t.units(40))
	onceWatch, otherWatch := t.watchPlace(once, 1), t.watchPlace(other, 2)
	t.mustComplete(l, "result", t.units(40))
	notice, ok := told(onceWatch, t.units(8))
	t.want(ok && notice.Token == 0, "a notice of token %d (any: %t) for a place that Complete gave up, want 0", notice.Token, ok)
	t.mustTell(otherWatch, other)
}

func tokensGrowOverComplete(t *T) {
	t.tokensGrow(t.takeAhead("a", t.units(40)), func(l lease) { t.mustComplete(l, "result", t.units(40)) })
}
