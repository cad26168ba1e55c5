package enginetest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func onceRequirements() []Requirement {
	return []Requirement{
		{"OnceIsAnsweredRecorded", "", canRecord, onceRecorded,
			"a request with Once must be answered with the record of the name, and get neither lease nor place"},
		{"OnceIsGrantedWithoutRecord", "", canRecord, onceWithoutRecord,
			"a request with Once must be served like any other while the name has no record"},
		{"RecordBindsOnlyOnce", "", canRecord, recordBindsOnlyOnce,
			"a record must not keep out a request without Once, nor count as a holder"},
		{"RecallReturnsRecordWhole", "", canRecord, recallWhole,
			"a record must come back as it was stored: empty, binary or large, under every name"},
		{"RecallOfUnknownFindsNothing", "", canRecord, recallUnknown,
			"Recall of a name without a record must find nothing, and that is not an error"},
		{"RecordEndsWithRetention", "", canRecord, recordEnds,
			"a record must be kept for its retention, no shorter and little longer, and Recall must say for how long"},
		{"RecordIsCopied", "", canRecord, recordIsCopied,
			"a record must be stored and returned by value: the caller may change the bytes afterwards"},
		{"ForgetDeletesRecord", "", canRecord, forgetDeletes,
			"Forget must delete the record, for good, and say whether there was one"},
		{"ForgetLeavesLease", "I4", canRecord, forgetLeavesLease,
			"Forget must not touch any lease"},
	}
}

func onceRecorded(t *T) {
	t.done("a", "result")
	for range 2 {
		t.mustBeRecorded(askOnce("a", t.units(8)), "result")
	}
	t.free("a")
	l := t.take("a", t.units(40))
	t.mustBeRecorded(askOnce("a", t.units(8)), "result")
	if canQueue(t) {
		t.mustBeRecorded(forPlace(askOnce("a", t.units(8)), t.units(40)), "result")
		t.waiting("a")
		t.queue("a", 1)
		t.mustBeRecorded(forPlace(askOnce("a", t.units(8)), t.units(40)), "result")
	}
	t.live(l)
}

func onceWithoutRecord(t *T) {
	l := t.grant(askOnce("a", t.units(40)))
	t.refuse(askOnce("a", t.units(8)))
	t.grantedAgain(l.AcquireRequest, l)
	t.mustRelease(l)
	t.unrecorded("a")
	l = t.grant(askOnce("a", t.units(40)))
	if canQueue(t) {
		waiter := t.placed(forPlace(askOnce("a", t.units(8)), t.units(40)), 1)
		t.mustRelease(l)
		t.handed(waiter)
	}
}

func recordBindsOnlyOnce(t *T) {
	t.done("a", "result")
	if canList(t) {
		t.lists("", []string{})
	}
	l := t.take("a", t.units(40))
	t.refused("a")
	if canQueue(t) {
		waiter := t.queue("a", 1)
		t.mustRelease(l)
		l = t.handed(waiter)
	}
	t.mustRelease(l)
	t.recorded("a", "result")
}

// everyByte returns a string with each byte once.
func everyByte() string {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return string(every)
}

// strangeBytes returns records and payloads that stores and their encodings often handle wrongly.
func strangeBytes() []string {
	return []string{"", "\x00", "\r\n\n", "\xff\xfe\xc3", "0", everyByte()}
}

func recallWhole(t *T) {
	records := map[string]string{"large": strings.Repeat(everyByte(), 1<<20/256)}
	for i, record := range strangeBytes() {
		records[fmt.Sprint("strange ", i)] = record
	}
	for _, name := range strangeNames() {
		records[name] = "of " + name
	}
	for name, record := range records {
		t.done(name, record)
	}
	for name, record := range records {
		t.recorded(name, record)
		t.mustBeRecorded(askOnce(name, t.units(8)), record)
	}
}

func recallUnknown(t *T) {
	t.unrecorded("never")
	t.want(!t.forget("never"), "Forget found a record of a name never used")
	l := t.take("a", t.units(40))
	t.unrecorded("a")
	t.mustRelease(l)
	t.unrecorded("a")
	t.free("never")
}

// recordEnds also stores a record for the longest time that the contract allows.
func recordEnds(t *T) {
	l := t.take("a", t.units(40))
	t.mustComplete(l, "short", t.units(3))
	l.answered = time.Now()
	long := t.take("b", t.units(40))
	t.mustComplete(long, "long", 10*365*24*time.Hour)
	t.lasts("Recall", t.units(3), l, func() time.Duration { return t.recorded("a", "short") })
	time.Sleep(t.units(1))
	t.lasts("Recall of a record of some age", t.units(3), l, func() time.Duration { return t.recorded("a", "short") })
	time.Sleep(t.units(2) + t.slack())
	t.unrecorded("a")
	t.listsRecords("", []string{"b"})
	r, found := t.describeRecord("a")
	t.want(!found, "DescribeRecord of a record whose retention has ended returned %+v", r)
	t.want(!t.forget("a"), "Forget found a record after its retention")
	t.grant(askOnce("a", t.units(8)))
	left := t.recorded("b", "long")
	t.want(left >= 9*365*24*time.Hour && left <= 11*365*24*time.Hour, "a record for ten years lasts for %s", left)
}

func recordIsCopied(t *T) {
	l := t.take("a", t.units(40))
	data := []byte("as given")
	req := driver.CompleteRequest{Name: "a", LeaseID: l.LeaseID, Record: data, Retention: t.units(40)}
	t.must("Complete", "a", t.Features.Recorder.Complete(t.Context(), req))
	copy(data, "changed!")
	r, _ := t.recall("a")
	t.need(bytes.Equal(r.Data, []byte("as given")), "record = %q, want it as given", r.Data)
	copy(r.Data, "changed!")
	copy(t.acquire(askOnce("a", t.units(8))).Record, "changed!")
	t.recorded("a", "as given")
}

func forgetDeletes(t *T) {
	for range 2 {
		t.done("a", "result")
		t.done("b", "other")
		t.want(t.forget("a"), "Forget did not find the record")
		t.unrecorded("a")
		t.want(!t.forget("a"), "a second Forget found a record")
		l := t.grant(askOnce("a", t.units(40)))
		t.mustRelease(l)
		t.recorded("b", "other")
	}
}

func forgetLeavesLease(t *T) {
	first := t.done("a", "result")
	l := t.take("a", t.units(40))
	t.want(t.forget("a"), "Forget did not find the record")
	t.forget("a")
	t.live(l)
	t.refused("a")
	t.mustRelease(l)
	t.above(first.token, l)
	t.above(l.token, t.take("a", t.units(8)))
}
