package tally_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/tally"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
)

// TestEveryKindIsCounted checks that every kind of event is counted, under a value that its counter
// declares. Two kinds are not: PlaceChanged and OutageEnded.
func TestEveryKindIsCounted(t *testing.T) {
	infos := tally.Counters()
	counted := map[tally.Counter]map[string]bool{}
	for _, k := range observe.Kinds() {
		m := tally.New(nil).Note(observe.Event{Kind: k, Count: 7})
		if k == observe.PlaceChanged || k == observe.OutageEnded {
			if m.Counter != tally.None || m.First || m.N != 0 {
				t.Errorf("%s is counted: %+v", k, m)
			}
			continue
		}
		if m.Counter == tally.None || m.N == 0 || !m.First {
			t.Errorf("%s is not counted: %+v", k, m)
			continue
		}
		info := infos[m.Counter]
		if !slices.Contains(info.Values, m.Value) {
			t.Errorf("%s counts in %s under %q, want one of %q", k, info.Name, m.Value, info.Values)
		}
		if counted[m.Counter] == nil {
			counted[m.Counter] = map[string]bool{}
		}
		counted[m.Counter][m.Value] = true
	}
	for i, info := range infos {
		if len(counted[tally.Counter(i)]) == 0 {
			t.Errorf("no event counts in %s", info.Name)
		}
	}
	if m := tally.New(nil).Note(observe.Event{Kind: observe.TokensPruned, Count: 7}); m.N != 7 {
		t.Errorf("7 tokens were pruned, %d counted", m.N)
	}
}

// TestWordsForErrors checks that each error that ends an acquire or a lease has a value that the
// counter declares.
func TestWordsForErrors(t *testing.T) {
	held := &holdfast.HeldError{}
	refusals := map[string][]error{
		"held":        {held, errors.Join(held, context.DeadlineExceeded)},
		"in-progress": {&holdfast.InProgressError{}},
		"ended":       {context.Canceled, context.DeadlineExceeded, errors.Join(context.Canceled, held)},
		"unavailable": {holdfast.ErrUnavailable, holdfast.ErrOutcomeUnknown, fmt.Errorf("%w: %w", holdfast.ErrUnavailable, context.Canceled)},
		"failed":      {holdfast.ErrDeadlock, holdfast.ErrKindMismatch, holdfast.ErrClosed, holdfast.ErrPermission, nil},
	}
	known := tally.Counters()[tally.Acquires].Values
	for want, errs := range refusals {
		if !slices.Contains(known, want) {
			t.Errorf("the counter does not announce %q", want)
		}
		for _, err := range errs {
			if got := tally.New(nil).Note(observe.Event{Kind: observe.Refused, Err: err}).Value; got != want {
				t.Errorf("an acquire refused with %v is %q, want %q", err, got, want)
			}
		}
	}
	losses := map[string]error{
		"max-hold": fmt.Errorf("%w: %w", holdfast.ErrLost, holdfast.ErrMaxHold),
		"stalled":  fmt.Errorf("%w: %w", holdfast.ErrLost, holdfast.ErrStalled),
		"broken":   &holdfast.BrokenError{Author: "ada"},
		"taken":    holdfast.ErrLost,
	}
	known = tally.Counters()[tally.Losses].Values
	for want, err := range losses {
		if got := tally.New(nil).Note(observe.Event{Kind: observe.Lost, Err: err}).Value; got != want || !slices.Contains(known, want) {
			t.Errorf("a loss by %v is %q, want %q", err, got, want)
		}
	}
	if got := tally.New(nil).Note(observe.Event{Kind: observe.Lost}).Value; got != "taken" {
		t.Errorf("a loss for no reason is %q", got)
	}
	if got := tally.New(nil).Note(observe.Event{Kind: observe.Released, Err: holdfast.ErrUnavailable}).Value; got != "unconfirmed" {
		t.Errorf("a release without an answer is %q", got)
	}
}

// TestNow checks that gauges rise at the beginning of a wait or a lease and fall at its end,
// whatever the end is.
func TestNow(t *testing.T) {
	ends := map[observe.Kind]observe.Event{
		observe.Released: {}, observe.Lost: {Err: holdfast.ErrLost}, observe.LeaseLeft: {},
	}
	for kind, end := range ends {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tell, now := teller(t)
				want := func(step string, want tally.Standing) {
					t.Helper()
					if got := now(); got != want {
						t.Errorf("%s: %+v, want %+v", step, got, want)
					}
				}
				want("before", tally.Standing{})
				tell("1", observe.Event{Kind: observe.Waiting, Waited: time.Second})
				time.Sleep(2 * time.Second)
				tell("2", observe.Event{Kind: observe.Waiting})
				want("two wait", tally.Standing{Waiting: 2, OldestWait: 3 * time.Second})
				tell("2", observe.Event{Kind: observe.OutageBegan})
				want("in an outage", tally.Standing{Waiting: 2, InOutage: 1, OldestWait: 3 * time.Second})
				tell("2", observe.Event{Kind: observe.OutageEnded})
				tell("1", observe.Event{Kind: observe.PlaceChanged, Place: 2})
				tell("1", observe.Event{Kind: observe.Acquired, AfterWait: true})
				time.Sleep(time.Second)
				tell("1", observe.Event{Kind: observe.Renewed})
				want("one holds", tally.Standing{Waiting: 1, OldestWait: time.Second, Held: 1, LongestHold: time.Second})
				end.Kind = kind
				tell("1", end)
				tell("2", observe.Event{Kind: observe.Refused, AfterWait: true})
				want("after all", tally.Standing{})
				tell("3", observe.Event{Kind: observe.OutageBegan}) // the start of this wait was not reported
				tell("3", observe.Event{Kind: observe.Released})
				want("after what has no beginning", tally.Standing{})
			})
		})
	}
}

// teller returns functions that report events to a Tally, and that return the gauges of the one
// group.
func teller(t *testing.T) (tell func(key lockinfo.LeaseID, e observe.Event), now func() tally.Standing) {
	all := tally.New(nil)
	tell = func(key lockinfo.LeaseID, e observe.Event) {
		e.Key, e.Time, e.Name = key, time.Now(), "a"
		all.Note(e)
	}
	return tell, func() (s tally.Standing) {
		got := all.Now()
		if len(got) != len(tally.Modes()) || got[tally.Group{Mode: lockinfo.Shared.Kind()}] != (tally.Standing{}) {
			t.Errorf("%+v, want one group for each mode, and nothing in the others", got)
		}
		return got[tally.Group{Mode: "exclusive"}]
	}
}

// TestGroups checks that names of one family are one group, and that the gauges of a group without
// leases are 0 instead of missing.
func TestGroups(t *testing.T) {
	all := tally.New(tally.Fold)
	if !all.Named() || tally.New(nil).Named() {
		t.Error("labels: the wrong way round")
	}
	hold := func(name string, mode lockinfo.Mode, kind observe.Kind) tally.Measurement {
		return all.Note(observe.Event{Kind: kind, Name: name, Key: lockinfo.LeaseID(name + mode.String()), Mode: mode, Time: time.Now(), Held: time.Minute})
	}
	if m := hold("orders/1", lockinfo.Shared, observe.Acquired); m.Name != "orders/*" || m.Mode != "shared" || !m.First {
		t.Errorf("measured as %+v", m)
	}
	if m := hold("orders/2", lockinfo.Shared, observe.Acquired); m.First {
		t.Error("the second of a family is the first")
	}
	hold("orders/2", lockinfo.Exclusive, observe.Acquired)
	orders := tally.Group{Name: "orders/*", Mode: "shared"}
	if got := all.Now(); got[orders].Held != 2 || len(got) != 2 {
		t.Errorf("%+v", got)
	}
	hold("orders/1", lockinfo.Shared, observe.Released)
	if m := hold("orders/2", lockinfo.Shared, observe.Released); m.Histogram != tally.HoldDuration || m.Seconds != 60 {
		t.Errorf("held for a minute: %+v", m)
	}
	hold("reports", lockinfo.Exclusive, observe.Acquired)
	downgraded := observe.Event{Kind: observe.Released, Name: "reports", Key: "reportsexclusive", Mode: lockinfo.Shared}
	if m := all.Note(downgraded); m.Mode != "exclusive" {
		t.Errorf("a lease that was downgraded ends as %+v", m.Group)
	}
	if got, known := all.Now()[orders]; !known || got != (tally.Standing{}) {
		t.Errorf("after their end: %+v, known %t", got, known)
	}
}

// TestNamesAreBounded checks that the number of labels is bounded, and that the first names keep
// their labels.
func TestNamesAreBounded(t *testing.T) {
	names, seen := tally.NewNames(func(name string) string { return name }), map[string]bool{}
	for round := range 2 {
		for i := range 10_000 {
			name := strings.Repeat(string(rune('a'+i%26)), 1+i/26%17) + fmt.Sprint(i)
			label := names.Label(name)
			if room := i < tally.MaxNames-1; room != (label == name) || !room && label != tally.Other {
				t.Fatalf("round %d: name %d is %q", round, i, label)
			}
			seen[label] = true
		}
	}
	if len(seen) != tally.MaxNames {
		t.Errorf("%d labels, want %d", len(seen), tally.MaxNames)
	}
	if label := tally.NewNames(func(string) string { return "a\xff" }).Label("a"); !utf8.ValidString(label) {
		t.Errorf("%q is not UTF-8", label)
	}
	if label := tally.NewNames(nil).Label("a"); label != "" {
		t.Errorf("a label without a function: %q", label)
	}
}

// TestTables checks that the tables match their indexes, and that every name is unique.
func TestTables(t *testing.T) {
	seen := map[string]bool{}
	check := func(name, help string) {
		if name == "" || help == "" || seen[name] || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("%q, %q: want a name of its own in lower case, and a help", name, help)
		}
		seen[name] = true
	}
	for _, c := range tally.Counters() {
		check(c.Name, c.Help)
		if (c.Label == "") != (len(c.Values) == 1) {
			t.Errorf("%s has the label %q with %q", c.Name, c.Label, c.Values)
		}
	}
	each := 0
	for _, f := range tally.Families() {
		f.Each(func(c tally.Counter, value string) {
			if each++; tally.Counters()[c].Family != f || !slices.Contains(tally.Counters()[c].Values, value) {
				t.Errorf("%s %q is not of family %d", tally.Counters()[c].Name, value, f)
			}
		})
	}
	for _, c := range tally.Counters() {
		each -= len(c.Values)
	}
	if each != 0 {
		t.Errorf("the families have %d more series than the counters", each)
	}
	for _, h := range tally.Histograms() {
		check(h.Name, h.Help)
		if !slices.IsSorted(h.Buckets) || len(h.Buckets) < 10 {
			t.Errorf("%s has the buckets %v", h.Name, h.Buckets)
		}
	}
	for _, g := range tally.Gauges() {
		check(g.Name, g.Help)
	}
	if got := tally.Counters()[tally.Runs].Name; got != "scheduled_runs" || int(tally.Runs) != len(tally.Counters())-1 {
		t.Errorf("the last counter is %s", got)
	}
	if got := tally.Histograms()[tally.HoldDuration].Name; got != "hold_duration" {
		t.Errorf("the last histogram is %s", got)
	}
}
