package enginetest

import (
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

func listRecordsRequirements() []Requirement {
	return []Requirement{
		{"DescribesRecord", "", canRecord, describesRecord,
			"DescribeRecord must tell how a record begins, its whole length and how long it lasts, and nothing of a name without one"},
		{"ListsRecordsByPrefix", "", canRecord, listsRecordsByPrefix,
			"ListRecords must yield the records of the names that begin with prefix, whose characters it takes literally, with the descriptions of DescribeRecord"},
		{"ListsOnlyRecords", "", canRecord, listsOnlyRecords,
			"ListRecords must leave out names that are only held, and records that are forgotten"},
		{"ListsEachRecordOnce", "", canRecord, listsEachRecordOnce,
			"ListRecords must yield every record that is there all the time, once"},
		{"ListRecordsStopsEarly", "", canRecord, listRecordsStopsEarly,
			"ListRecords must stop when the loop does, and the loop's body may use the engine"},
		{"ListRecordsReportsError", "", canRecord, listRecordsReportsError,
			"ListRecords must yield an error, not an empty list, when it cannot be carried out"},
	}
}

// describeRecord returns the description of the record of a name.
func (t *T) describeRecord(name string) (driver.RecordInfo, bool) {
	t.Helper()
	r, found, err := t.Features.Recorder.DescribeRecord(t.Context(), name)
	t.must("DescribeRecord", name, err)
	return r, found
}

// describes fails the run unless DescribeRecord describes this record, and returns how long it
// lasts.
func (t *T) describes(name, record string) time.Duration {
	t.Helper()
	r, found := t.describeRecord(name)
	t.need(found && r.Name == name && r.Length == len(record),
		"DescribeRecord(%q) says %q of %d bytes (found: %t), want %d", name, r.Name, r.Length, found, len(record))
	t.sameBytes("DescribeRecord", r.Head, record[:min(len(record), driver.RecordHead)])
	return r.ExpiresIn
}

// listsRecords fails the run unless ListRecords yields exactly the names that begin with
// prefix, each with the description that DescribeRecord returns.
func (t *T) listsRecords(prefix string, names []string) {
	t.Helper()
	var got []string
	for r := range all(t, t.Features.Recorder.ListRecords(t.Context(), prefix)) {
		same, found := t.describeRecord(r.Name)
		t.want(found && string(r.Head) == string(same.Head) && r.Length == same.Length && r.ExpiresIn >= same.ExpiresIn && r.ExpiresIn <= same.ExpiresIn+t.units(8),
			"ListRecords says %+v, DescribeRecord says %+v", r, same)
		got = append(got, r.Name)
	}
	t.listed("ListRecords", got, prefix, names)
}

func describesRecord(t *T) {
	records := map[string]string{
		"empty": "", "short": "result\x00\xff\n",
		"whole": strings.Repeat("x", driver.RecordHead), "long": strings.Repeat("result", driver.RecordHead),
	}
	for name, record := range records {
		t.done(name, record)
		t.describes(name, record)
	}
	for range 2 {
		r, found := t.describeRecord("never")
		t.want(!found && r.Length == 0 && r.Name == "", "DescribeRecord of a name without a record says %+v", r)
	}
	l := t.take("a", t.units(40))
	_, found := t.describeRecord("a")
	t.want(!found, "DescribeRecord has found a record of a name that is only held")
	t.mustComplete(l, "result", t.units(8))
	l.answered = time.Now()
	t.lasts("DescribeRecord", t.units(8), l, func() time.Duration { return t.describes("a", "result") })
	r, _ := t.describeRecord("short")
	copy(r.Head, "changed!")
	t.describes("short", records["short"])
	t.recorded("short", records["short"])
}

func listsRecordsByPrefix(t *T) {
	names := []string{"orders/1", "orders/2", "orders", "Orders/1", "x/orders/1", "{orders}/1", "a*b", "axb", "a?b", "a[x]b", "a\\*b", "a%b", "a_b"}
	for _, name := range names {
		t.done(name, "of "+name)
	}
	for _, prefix := range []string{"", "orders/", "orders", "{", "orders/12", "a*", "*", "a?", "a[x]", "a\\", "a%", "a_"} {
		t.listsRecords(prefix, names)
	}
}

func listsOnlyRecords(t *T) {
	t.take("held", t.units(40))
	t.done("forgotten", "result")
	t.forget("forgotten")
	t.done("done", "result")
	t.take("done", t.units(40))
	t.listsRecords("", []string{"done"})
}

func listsEachRecordOnce(t *T) {
	names := numbered("many/", 150)
	for _, name := range names {
		t.mustComplete(t.take(name, t.units(400)), "result", t.units(4000))
	}
	t.listsRecords("many/", names)
}

func listRecordsStopsEarly(t *T) {
	for _, name := range numbered("x/", 20) {
		t.done(name, "result")
	}
	stopsEarly(t, t.Features.Recorder.ListRecords(t.Context(), "x/"), func(r driver.RecordInfo) {
		t.recorded(r.Name, "result")
		t.take("beside/"+r.Name, t.units(40))
	})
}

func listRecordsReportsError(t *T) {
	t.done("a", "result")
	reportsError(t, t.Features.Recorder.ListRecords(t.endedContext(), ""))
}
