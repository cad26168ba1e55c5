package enginetest

import (
	"context"
	"fmt"
	"slices"
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
	if err != nil {
		t.Fatalf("DescribeRecord(%q): %v", name, err)
	}
	return r, found
}

// describes fails the run unless the record of a name is described as this one,
// and returns how long it lasts.
func (t *T) describes(name, record string) time.Duration {
	t.Helper()
	r, found := t.describeRecord(name)
	if !found || r.Name != name || r.Length != len(record) {
		t.Fatalf("DescribeRecord(%q) says %q of %d bytes (found: %t), want %d", name, r.Name, r.Length, found, len(record))
	}
	t.sameBytes("DescribeRecord", r.Head, record[:min(len(record), driver.RecordHead)])
	return r.ExpiresIn
}

// listsRecords fails the run unless ListRecords yields exactly the names that begin with
// prefix, each with the description that DescribeRecord returns.
func (t *T) listsRecords(prefix string, names []string) {
	t.Helper()
	got, want := []string{}, []string{}
	for r, err := range t.Features.Recorder.ListRecords(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("ListRecords(%q): %v", prefix, err)
		}
		same, found := t.describeRecord(r.Name)
		if !found || string(r.Head) != string(same.Head) || r.Length != same.Length || r.ExpiresIn < same.ExpiresIn || r.ExpiresIn > same.ExpiresIn+t.units(8) {
			t.Errorf("ListRecords says %+v, DescribeRecord says %+v", r, same)
		}
		got = append(got, r.Name)
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			want = append(want, name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("ListRecords(%q) = %q, want %q", prefix, got, want)
	}
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
		if r, found := t.describeRecord("never"); found || r.Length != 0 || r.Name != "" {
			t.Errorf("DescribeRecord of a name without a record says %+v", r)
		}
	}
	l := t.take("a", t.units(40))
	if _, found := t.describeRecord("a"); found {
		t.Errorf("DescribeRecord has found a record of a name that is only held")
	}
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
	names := make([]string, 150)
	for i := range names {
		names[i] = fmt.Sprintf("many/%d", i)
		t.mustComplete(t.take(names[i], t.units(400)), "result", t.units(4000))
	}
	t.listsRecords("many/", names)
}

func listRecordsStopsEarly(t *T) {
	for i := range 20 {
		t.done(fmt.Sprintf("x/%d", i), "result")
	}
	seen := 0
	for r, err := range t.Features.Recorder.ListRecords(t.Context(), "x/") {
		if err != nil {
			t.Fatalf("ListRecords: %v", err)
		}
		t.recorded(r.Name, "result")
		t.take("beside/"+r.Name, t.units(40))
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("ListRecords yielded %d records, want 2 of 20", seen)
	}
}

func listRecordsReportsError(t *T) {
	t.done("a", "result")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errs := 0
	for _, err := range t.Features.Recorder.ListRecords(ctx, "") {
		if err != nil {
			errs++
		}
	}
	if errs != 1 {
		t.Errorf("ListRecords with an ended context yielded %d errors, want 1", errs)
	}
}
