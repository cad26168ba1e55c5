package sqlitelock

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A ruleRow is the part of a lease or a place that the rules use.
type ruleRow struct {
	mode     lockinfo.Mode
	boot     string // its boot ID
	left     int64  // until it expires
	released bool   // of a lease
	once     bool   // of a place
}

func (r ruleRow) over() bool { return r.boot != "m" || r.left <= 0 }

// ends are all kinds of expiry: later than now, now, before now, and in another boot, whose ID
// sorts before or after this one's.
var ends = []ruleRow{
	{boot: "m", left: 2}, {boot: "m", left: 1}, {boot: "m", left: 0}, {boot: "m", left: -1},
	{boot: "a", left: 3}, {boot: "z", left: 3},
}

// lists calls do with every list of at most n rows whose live rows can exist together.
func lists(n int, rows []ruleRow, together func(v *rules.View, r ruleRow) bool, do func([]ruleRow)) {
	var more func(list []ruleRow, v rules.View)
	more = func(list []ruleRow, v rules.View) {
		do(list)
		for _, r := range rows {
			if with := v; len(list) < n && (r.over() || together(&with, r)) {
				more(append(slices.Clip(list), r), with)
			}
		}
	}
	more(nil, rules.View{})
}

// A scene is a name whose rows a test writes, in a transaction that is not committed.
type scene struct {
	*tx
	t *testing.T
}

const sceneName = "t"

func newScene(t *testing.T) *scene {
	e := openOn(t, newHost("m"))
	r, err := e.reader(e.conn)
	s := &scene{&tx{reader: r}, t}
	s.must(err)
	s.run(beginSQL)
	t.Cleanup(func() { s.run(rollbackSQL) })
	return s
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) run(query string, args ...any) {
	s.t.Helper()
	s.must(s.sql.run(query, args...))
}

// end deletes all rows, so that the next scene begins without any.
func (s *scene) end() {
	s.run(purgeLeasesSQL, sceneName, "", 0, 1000)
	s.run(purgePlacesSQL, sceneName, "", 0, 1000)
	s.run(forgetSQL, sceneName, "m", 0, 0)
	s.steps, s.notices = 0, nil
}

// holderOf returns the stored text of the holder of lease i.
func holderOf(i int) string { return fmt.Sprintf(`{"PID":%d}`, i+1) }

func (s *scene) lease(i int, r ruleRow) {
	f := modes.Of(r.mode)
	s.run(grantSQL, sceneName, rowID(i), i+1, f.Kind, f.Limit, f.Permits, holderOf(i), r.boot, s.now.boot-int64(i)-1, s.now.boot+r.left)
	if r.released {
		s.run(keepClosedSQL, sceneName, r.boot, rowID(i), s.now.boot+r.left-1, s.now.boot+r.left)
	}
}

func (s *scene) place(i int, r ruleRow) {
	f := modes.Of(r.mode)
	s.run(givePlaceSQL, sceneName, rowID(i), f.Kind, f.Limit, f.Permits, 0, r.once, "{}", r.boot, s.now.boot, s.now.boot+r.left)
}

// purged purges the name and returns its view. It fails t unless the first view reports correctly
// whether there are expired rows.
func (s *scene) purged(id lockinfo.LeaseID, over bool) view {
	for first := true; ; first = false {
		v, err := s.look(sceneName, id)
		s.must(err)
		if first && v.stale != over {
			s.t.Fatalf("stale: %t, want %t", v.stale, over)
		}
		again, err := s.purge(sceneName, &v)
		s.must(err)
		if !again {
			return v
		}
	}
}

// TestLookSeesLeases compares the statement that looks at a name with package rules, for all small
// sets of leases. Expired leases do not count, all others count, and the lease that expires first
// is described. A lease ID has its lease unless the lease expired or was released. INVARIANT I1.
func TestLookSeesLeases(t *testing.T) {
	s := newScene(t)
	var rows []ruleRow
	for _, n := range []lockinfo.Mode{lockinfo.Exclusive, lockinfo.Shared, lockinfo.Permits(1, 3), lockinfo.Permits(2, 3)} {
		for _, end := range ends {
			end.mode = n
			rows = append(rows, end)
		}
		rows = append(rows, ruleRow{mode: n, boot: "m", left: 2, released: true})
	}
	fits := func(v *rules.View, r ruleRow) bool {
		fits := v.Fits(r.mode)
		v.AddLease(r.mode, 1)
		return fits
	}
	tried := 0
	lists(2, rows, fits, func(list []ruleRow) {
		tried++
		var want rules.View
		soonest := map[string]bool{}
		for i, r := range list {
			s.lease(i, r)
			if r.over() {
				continue
			}
			if want.AddLease(r.mode, time.Duration(r.left)) {
				soonest = map[string]bool{}
			}
			if int64(want.Left) == r.left {
				soonest[holderOf(i)] = true
			}
		}
		for i, r := range append(slices.Clip(list), ruleRow{}) {
			v := s.purged(rowID(i), i == 0 && slices.ContainsFunc(list, ruleRow.over))
			own := i < len(list) && !r.over() && !r.released
			if v.Own != own || own && v.own != int64(i+1) {
				t.Fatalf("%v: lease %d is its ID's own: %t, with token %d; want %t", list, i, v.Own, v.own, own)
			}
			var token int64
			if _, err := s.sql.one(heldSQL, []any{sceneName, "m", rowID(i), s.now.boot}, &token); err != nil || token != v.own {
				t.Fatalf("%v: lease %d is held with token %d (%v), want %d", list, i, token, err, v.own)
			}
			if !v.Held {
				v.Taken, v.Left = 0, 0 // mean nothing
			}
			if got := fmt.Sprint(v.Held, v.Taken, v.Left); got != fmt.Sprint(want.Held, want.Taken, want.Left) || v.Held && !soonest[v.first.holder] {
				t.Fatalf("%v: the statement sees %s of %s, want %v, %v, %v of %v", list, got, v.first.holder, want.Held, want.Taken, want.Left,
					slices.Collect(maps.Keys(soonest)))
			}
			if pid := holders.Read(v.first.holder).PID; v.Held && (v.first.began != s.now.boot-int64(pid) || v.first.released != list[pid-1].released) {
				t.Fatalf("%v: the statement sees lease %d as granted at %d, released %t", list, pid-1, v.first.began, v.first.released)
			}
		}
		s.end()
	})
	t.Logf("%d sets of leases", tried)
	if least := 300; tried < least {
		t.Errorf("%d sets of leases, want %d at least", tried, least)
	}
}

// TestGlimpse checks that a name is taken for free only if the store has no row of the name, live
// or expired, except its last token, and no tombstone of the lease ID. The view of a free name is
// the same as that of look.
func TestGlimpse(t *testing.T) {
	s := newScene(t)
	id := rowID(1)
	for what, c := range map[string]struct {
		put  func()
		free bool
	}{
		"nothing":                    {func() {}, true},
		"a last token":               {func() { s.run(putTokenSQL, sceneName, int64(7), int64(0)) }, true},
		"a lease":                    {func() { s.lease(1, ruleRow{boot: "m", left: 2}) }, false},
		"a shared lease":             {func() { s.lease(1, ruleRow{mode: lockinfo.Shared, boot: "m", left: 2}) }, false},
		"a lease that is over":       {func() { s.lease(1, ruleRow{boot: "m"}) }, false},
		"a lease of another boot":    {func() { s.lease(1, ruleRow{boot: "z", left: 2}) }, false},
		"a lease that keeps closed":  {func() { s.lease(1, ruleRow{boot: "m", left: 2, released: true}) }, false},
		"a place":                    {func() { s.place(1, ruleRow{boot: "m", left: 2}) }, false},
		"a record":                   {func() { s.run(recordSQL, sceneName, id, "m", s.now.boot+1, 0, []byte("done")) }, false},
		"a tombstone":                {func() { s.run(cancelSQL, id, "m", s.now.boot+1) }, false},
		"a tombstone of another":     {func() { s.run(cancelSQL, rowID(2), "m", s.now.boot+1) }, true},
		"a lease of another name":    {func() { s.run(grantSQL, "t2", id, 1, 0, 0, 0, "{}", "m", 0, s.now.boot+1) }, true},
		"what is over of that other": {func() { s.run(sweepLeasesSQL, "other boot", s.now.boot, 64) }, true},
	} {
		s.run("SAVEPOINT before")
		c.put()
		v, free, err := s.glimpse(sceneName, id)
		s.must(err)
		if free != c.free {
			t.Errorf("%s: free: %t, want %t", what, free, c.free)
		}
		looked, err := s.look(sceneName, id)
		s.must(err)
		if looked.Left = v.Left; free && v != looked { // Left has no meaning if the name is free
			t.Errorf("%s: the glimpse shows %+v, and the look %+v", what, v, looked)
		}
		s.run("ROLLBACK TO before")
	}
}

// TestLookSeesPlaces compares the statements with package rules for all small queues, with and
// without a record. Both find the same head among the places that are neither expired nor given up,
// and the places that are given up get a notice. INVARIANT I7.
func TestLookSeesPlaces(t *testing.T) {
	s := newScene(t)
	var rows []ruleRow
	for _, n := range []lockinfo.Mode{lockinfo.Exclusive, lockinfo.Shared} {
		for _, end := range ends {
			for _, once := range []bool{false, true} {
				end.mode, end.once = n, once
				rows = append(rows, end)
			}
		}
	}
	all := func(*rules.View, ruleRow) bool { return true }
	tried := 0
	lists(2, rows, all, func(list []ruleRow) {
		for _, recorded := range []bool{false, true} {
			tried++
			if recorded {
				s.run(recordSQL, sceneName, rowID(9), "m", s.now.boot+1, 0, []byte("done"))
			}
			want := rules.View{Recorded: recorded}
			var home []lockinfo.LeaseID
			for i, r := range list {
				s.place(i, r)
				if !r.over() && want.GivesUp(r.once) {
					home = append(home, rowID(i))
				} else if !r.over() {
					want.AddPlace(r.mode, r.once, time.Duration(r.left))
				}
			}
			v := s.purged(rowID(9), slices.ContainsFunc(list, ruleRow.over))
			var told []lockinfo.LeaseID
			for _, m := range s.notices {
				told = append(told, m.ID)
			}
			if slices.Sort(told); !slices.Equal(told, home) {
				t.Fatalf("%v, recorded: %t: %v are told, want %v", list, recorded, told, home)
			}
			if !v.Queued {
				v.Head = 0 // means nothing
			}
			if v.Queued != want.Queued || v.Head != want.Head || v.HeadOnce != want.HeadOnce || v.Recorded != recorded || v.Due() != want.Due() {
				t.Fatalf("%v, recorded: %t: the statements see %+v, want %+v", list, recorded, v.View, want)
			}
			s.end()
		}
	})
	t.Logf("%d queues", tried)
	if least := 800; tried < least {
		t.Errorf("%d queues, want %d at least", tried, least)
	}
}

// TestTokensOfOneStep checks that waiters that are granted the lock together, at one instant of the
// clock, get tokens that grow in the order of the queue. INVARIANT I2.
func TestTokensOfOneStep(t *testing.T) {
	e := openOn(t, newHost("m"))
	writer := drivertest.Request("t", time.Minute)
	last := drivertest.Granted(t, e, writer)
	var readers []driver.AcquireRequest
	for i := range 3 {
		readers = append(readers, inQueue(of(drivertest.Request("t", time.Minute), lockinfo.Shared), time.Minute))
		placed(t, e, readers[i], i+1)
	}
	drivertest.Release(t, e, writer)
	for i, req := range readers {
		token := drivertest.Granted(t, e, req)
		if token <= last {
			t.Errorf("reader %d has token %d, want one above %d", i+1, token, last)
		}
		last = token
	}
	if remembered := lastToken(t, e, "t"); remembered != last {
		t.Errorf("the last token is %d, want %d", remembered, last)
	}
}
