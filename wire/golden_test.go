package wire_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestBytes checks that the JSON that programs read does not change, byte for byte. The command
// prints its results in this form, and events as lines.
func TestBytes(t *testing.T) {
	var lines, pretty bytes.Buffer
	e := json.NewEncoder(&lines)
	for _, v := range events() {
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	e = json.NewEncoder(&pretty)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	for _, v := range views() {
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	for file, got := range map[string][]byte{"testdata/events.json": lines.Bytes(), "testdata/views.json": pretty.Bytes()} {
		want, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s (%v): got\n%s", file, err, got)
		}
	}
}

// TestReadBack checks that the types of this package read everything that they write.
func TestReadBack(t *testing.T) {
	for _, v := range append(views(), events()[1], events()[4], events()[9]) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		read := reflect.New(reflect.TypeOf(v))
		if err := json.Unmarshal(text, read.Interface()); err != nil || !reflect.DeepEqual(read.Elem().Interface(), v) {
			t.Errorf("%v\n%s is read as\n%+v", err, text, read.Elem())
		}
	}
}

// TestHeld checks that a name that is only kept closed is not held, and that a foreign client's
// lock is held.
func TestHeld(t *testing.T) {
	closed := lockinfo.LockState{Holders: []lockinfo.Holding{{LeaseID: "1", Token: 41, ExpiresIn: time.Minute, Released: true}}}
	if v := wire.LockOf(closed); v.Held || v.Holders[0].Foreign {
		t.Errorf("a name that is kept closed is %+v", v)
	}
	foreign := lockinfo.LockState{Holders: []lockinfo.Holding{{ExpiresIn: lockinfo.Never}}}
	if v := wire.LockOf(foreign); !v.Held || !v.Holders[0].Foreign || v.Holders[0].ExpiresInMS != nil {
		t.Errorf("a foreign client's lock with no expiry is %+v", v)
	}
}

func events() []wire.Event {
	token := wire.TokenOf(17)
	const id = "0123456789abcdef0123456789abcdef"
	none, busy := 0, 75
	person := wire.BlockerOf(driver.Blocker{Holder: lockinfo.Holder{
		Host: "web-3", PID: 812, User: "deploy", Program: "deploy.sh", Reason: "release 1.4",
	}, Since: 12 * time.Minute, ExpiresIn: 29 * time.Second})
	foreign := wire.BlockerOf(driver.Blocker{ExpiresIn: lockinfo.Never, Foreign: true})
	return []wire.Event{
		{Event: "waiting", Name: "n", Reason: "held by <a> & b"},
		{Event: "waiting", Name: "n", Place: 2, QueueLength: 5, Holder: &person, WaitedMS: wire.Left(0), Reason: "r"},
		{Event: "waiting", Name: "n", Place: 1, QueueLength: 1, Holder: &foreign, WaitedMS: wire.Left(time.Second), Reason: "r"},
		{Event: "waiting", Name: "n", Outage: "o", WaitedMS: wire.Left(time.Second), Reason: "r"},
		{Event: "acquired", Name: "n", LeaseID: id, Token: &token},
		{Event: "exited", Name: "n", LeaseID: id, Token: &token, Status: &none},
		{Event: "exited", Name: "n", LeaseID: id, Token: &token, Status: &busy},
		{Event: "lost", Name: "n", LeaseID: id, Token: &token, Reason: "r"},
		{Event: "result", Name: "n", Token: &token, Outcome: "exited", Status: &none, WaitedMS: wire.Left(0), HeldMS: wire.Left(time.Second)},
		{Event: "result", Name: "n", Outcome: "busy", Status: &busy, WaitedMS: wire.Left(time.Second), HeldMS: wire.Left(0), Reason: "r"},
	}
}

func views() []any {
	person := lockinfo.Holder{
		Host: "web-3", PID: 812, User: "deploy", Program: "deploy.sh", Label: "worker", Reason: "film <12> & more",
		Labels: map[string]string{"b": "2", "a": "1"}, Fingerprint: "f",
	}
	lock := lockinfo.LockState{
		Name: "encoders/ü", Mode: lockinfo.Permits(3, 3), LastToken: 1795256697547813, QueueLength: 7,
		Holders: []lockinfo.Holding{
			{LeaseID: "0123456789abcdef0123456789abcdef", Token: 1795256697547813, Mode: lockinfo.Permits(2, 3), Holder: person, Since: 721500 * time.Millisecond, ExpiresIn: 26999500 * time.Microsecond, TTL: 30 * time.Second},
			{ExpiresIn: lockinfo.Never},
			{LeaseID: "0123456789abcdef0123456789abcdee", Token: 1795256697547812, Mode: lockinfo.Permits(1, 3), Holder: lockinfo.Holder{Host: "web-4", Person: true}, Since: time.Hour, ExpiresIn: 1500 * time.Millisecond, Released: true},
		},
		Queue: []lockinfo.Place{
			{LeaseID: "0123456789abcdef0123456789abcded", Mode: lockinfo.Permits(1, 3), Holder: person, Since: 3200 * time.Millisecond, ExpiresIn: 14 * time.Second},
			{LeaseID: "0123456789abcdef0123456789abcdec", Mode: lockinfo.Shared, Since: time.Millisecond, ExpiresIn: time.Second},
		},
	}
	broken := []lockinfo.Broken{{Author: "ada@ops-1", Reason: "the host is gone", Ago: 90 * time.Second, Token: 17, LeaseID: "x", Mode: lockinfo.Permits(1, 3), Holder: person}}
	diagnosis := driver.Diagnosis{Findings: []driver.Finding{
		{Key: "clock", Level: driver.Warn, Server: "a:1", Text: "off by 2 ms", Measures: map[string]time.Duration{"offset": 2345 * time.Microsecond}, Counts: map[string]int64{"n": 3}},
		{Key: "rights", Text: "fine"},
	}}
	token, day := wire.TokenOf(17), time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	return []any{
		wire.LockOf(lock), wire.WholeLockOf(lock), wire.LockDetailsOf(lock, broken), wire.LockDetailsOf(lockinfo.LockState{Name: "free"}, nil), []wire.Lock{},
		wire.Break{Name: "n", Author: "a", Reason: "r", Broken: wire.HoldersOf(lock.Holders)}, wire.Break{Broken: wire.HoldersOf(nil)},
		wire.DiagnosisOf(diagnosis, "redis://host:1/2", 30*time.Second), wire.DiagnosisOf(driver.Diagnosis{}, "memory:", time.Second),
		wire.Once{Key: "k", State: "unknown"},
		wire.Once{Key: "k", State: "done", ExpiresInMS: wire.Left(time.Minute), Token: &token, OutputLength: new(int)},
		wire.Once{Key: "k", State: "in_progress", HeldMS: wire.Left(time.Minute), ExpiresInMS: wire.Left(lockinfo.Never), Holder: &wire.Who{Host: "h"}},
		wire.Once{Key: "k", State: "schedule", ExpiresInMS: wire.Left(time.Hour), Schedule: &wire.Schedule{Name: "k", Gaps: []wire.MissedRuns{}, Runs: []string{}}},
		wire.Schedule{
			Name: "k", Began: day, Next: &day, Last: &wire.DoneRun{Scheduled: day, Started: day, TookMS: 17, By: "h", Attempt: 2, Token: token},
			Begun: &wire.BegunRun{Scheduled: day, At: day, By: "h", Attempts: 3, Open: true, Error: "no disk"}, Done: 5, Missed: 7,
			Gaps: []wire.MissedRuns{{First: day, Last: day, Count: 1, Error: "no disk"}}, Runs: []string{"done", "missed"}, Running: &wire.Who{Host: "h"},
			Led: new(bool), Leader: &wire.Who{Host: "h"}, Standby: []wire.Who{{Host: "i"}},
		},
		wire.Change{Change: "appeared", Name: "k", Lock: &wire.Lock{Name: "k", Holders: []wire.Holder{}}}, wire.Change{Change: "gone", Name: "k"}, wire.Change{Change: "store_away", Reason: "r"},
		wire.Change{Change: "event", Name: "k", Event: &wire.HistoryEvent{ID: "1-0", Event: "queued", Name: "k"}},
		wire.Wait{Free: true, WaitedMS: 1500, Locks: []wire.Lock{wire.LockOf(lockinfo.LockState{Name: "k"})}},
		wire.LockDetails{Lock: wire.WholeLockOf(lockinfo.LockState{Name: "k"}), Once: &wire.Once{Key: "k", State: "done", Token: &token}, Broken: []wire.Broken{}},
		wire.HistoryOf("k", []lockinfo.HistoryEvent{
			{ID: "1-0", Kind: lockinfo.HistoryHandedOver, Name: "k", Ago: 90 * time.Second, Mode: lockinfo.Permits(2, 3), Token: 17, Holder: person, Waited: 2500 * time.Millisecond},
			{ID: "2-0", Kind: lockinfo.HistoryBroken, Name: "k", Ago: 80 * time.Second, Mode: lockinfo.Permits(2, 3), Token: 17, Holder: person, Held: 10 * time.Second, Author: "ada@ops-1", Reason: "the host is gone"},
			{ID: "3-0", Kind: lockinfo.HistoryQueued, Name: "k", Holder: lockinfo.Holder{Host: "web-4"}},
			{ID: "4-0", Kind: lockinfo.HistoryGaveUp, Name: "k", Holder: lockinfo.Holder{Host: "web-4"}},
			{Kind: lockinfo.HistoryGap},
		}), wire.HistoryOf("free", nil),
	}
}
