package sqlitelock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const events = `SELECT count(*) FROM event`

// kinds returns the kinds of the events in the history of a name.
func kinds(t *testing.T, e *Engine, name string) (all []lockinfo.HistoryKind) {
	t.Helper()
	history, err := e.History(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range history {
		all = append(all, event.Kind)
	}
	return all
}

// remembering turns on the history of e, and returns e.
func remembering(e *Engine) *Engine {
	e.history = true
	return e
}

// TestHistoryIsOff checks that an engine without the option writes no events, and reports that
// history is unsupported. An engine with the option, on the same file, writes the events of its own
// requests.
func TestHistoryIsOff(t *testing.T) {
	off := openNew(t)
	drivertest.Cycle(t, off, "a")
	held := drivertest.Request("a", time.Minute)
	drivertest.Granted(t, off, held)
	if _, err := off.History(t.Context(), "a"); !errors.Is(err, driver.ErrUnsupported) || off.Capabilities().History {
		t.Errorf("History = %v, want ErrUnsupported", err)
	}
	off.OnEvent(func(lockinfo.HistoryEvent) { t.Error("received an event") })()
	if n := number(t, plain(t, off.path), events); n != 0 {
		t.Errorf("%d events", n)
	}
	on := openRemembering(t, off.path)
	t.Cleanup(func() { on.Close() })
	drivertest.Release(t, on, held)
	if got := kinds(t, on, "a"); !slices.Equal(got, []lockinfo.HistoryKind{lockinfo.HistoryReleased}) {
		t.Errorf("history %v, want the release", got)
	}
}

// TestHistoryCost checks that an event costs one statement and two pages of the log, in the same
// two transactions.
func TestHistoryCost(t *testing.T) {
	e := remembering(openOn(t, newHost("boot")))
	c := count(e)
	drivertest.Cycle(t, e, "t") // includes the sweep, and the first token of the name
	least := [4]int{1 << 30, 1 << 30, 1 << 30, 1 << 30}
	for range 3 * trimEvery { // some rounds delete old events, and cost more
		req := drivertest.Request("t", time.Minute)
		for i, do := range []func(){
			func() { drivertest.Granted(t, e, req) },
			func() { drivertest.Release(t, e, req) },
		} {
			c.passed()
			logged := frames(t, e)
			do()
			least[2*i], least[2*i+1] = min(least[2*i], c.passed()), min(least[2*i+1], int(frames(t, e)-logged))
		}
	}
	if want := [4]int{6, 4, 4, 3}; least != want {
		t.Errorf("acquire: %d statements and %d pages, release: %d and %d; want %v", least[0], least[1], least[2], least[3], want)
	}
}

// TestHistoryIsSwept checks that not many more events of a busy name are kept than are shown, and
// none after a day. INVARIANT I11.
func TestHistoryIsSwept(t *testing.T) {
	h := newHost("boot")
	e := remembering(openOn(t, h))
	conn := plain(t, e.path)
	most := int64(0)
	for range 500 {
		drivertest.Cycle(t, e, "t")
		h.pass(time.Second, time.Second)
		most = max(most, number(t, conn, events))
	}
	// Each event is followed by a deletion with a chance of 1 in trimEvery, so a correct engine
	// hardly ever exceeds this limit.
	if most < driver.MaxHistory || most > driver.MaxHistory+30*trimEvery {
		t.Errorf("%d events are kept of one name", most)
	}
	h.pass(driver.HistoryMemory, driver.HistoryMemory)
	if got := kinds(t, e, "t"); len(got) != 0 {
		t.Errorf("%d events are remembered after a day", len(got))
	}
	for range 10 * sweepEvery {
		drivertest.Cycle(t, e, "work")
	}
	if n := number(t, conn, events+` WHERE name = 't'`); n != 0 {
		t.Errorf("%d events are kept after a day", n)
	}
}

// TestSweepWritesEvents checks that a sweep writes the events of expired leases and places of all
// names.
func TestSweepWritesEvents(t *testing.T) {
	h := newHost("boot")
	e := remembering(openOn(t, h))
	drivertest.Granted(t, e, drivertest.Request("lease", time.Minute))
	holder := drivertest.Request("place", time.Hour)
	drivertest.Granted(t, e, holder)
	placed(t, e, inQueue(drivertest.Request("place", time.Hour), time.Minute), 1)
	h.pass(time.Hour-time.Second, time.Hour-time.Second)
	for range 2 * sweepEvery {
		drivertest.Cycle(t, e, "work")
	}
	if n := number(t, plain(t, e.path), places) + number(t, plain(t, e.path), leases+` WHERE name = 'lease'`); n != 0 {
		t.Fatalf("%d rows that are over were not swept: nothing was shown", n)
	}
	for name, last := range map[string]lockinfo.HistoryKind{"lease": lockinfo.HistoryExpired, "place": lockinfo.HistoryGaveUp} {
		history, err := e.History(t.Context(), name)
		if err != nil || len(history) == 0 || history[len(history)-1].Kind != last {
			t.Fatalf("history of %q: %v, %v; want %v at its end", name, history, err, last)
		}
		if end := history[len(history)-1]; end.Held+end.Waited != time.Minute {
			t.Errorf("%v: held %s, waited %s; want a minute", end.Kind, end.Held, end.Waited)
		}
	}
}

// TestHistoryOutlivesReboot checks that the history contains the events of an earlier boot, and the
// expiry of its leases.
func TestHistoryOutlivesReboot(t *testing.T) {
	h := newHost("one boot")
	path := filepath.Join(t.TempDir(), "locks.db")
	e := remembering(h.open(t, path))
	drivertest.Granted(t, e, drivertest.Request("a", time.Hour))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	next := newHost("next boot")
	next.pass(0, time.Minute)
	e = remembering(next.open(t, path))
	history, err := e.History(t.Context(), "a")
	if err != nil || len(history) != 2 || history[0].Kind != lockinfo.HistoryAcquired || history[1].Kind != lockinfo.HistoryExpired {
		t.Fatalf("history %+v, %v; want acquired and expired", history, err)
	}
	if ago := history[0].Ago; ago < 59*time.Second || ago > 2*time.Minute {
		t.Errorf("acquired %s ago, want a minute", ago)
	}
}

// TestFeedTellsOfGaps checks that the feed reports a gap if events were deleted before it has read
// them, and whenever the first listener begins.
func TestFeedTellsOfGaps(t *testing.T) {
	e := remembering(openNew(t))
	heard := make(chan lockinfo.HistoryEvent, 1000)
	next := func() lockinfo.HistoryEvent {
		t.Helper()
		select {
		case e := <-heard:
			return e
		case <-time.After(10 * time.Second):
			t.Fatal("no event for 10 s")
			return lockinfo.HistoryEvent{}
		}
	}
	for range 2 {
		stop := e.OnEvent(func(e lockinfo.HistoryEvent) { heard <- e })
		if first := next(); first.Kind != lockinfo.HistoryGap {
			t.Fatalf("received first %+v, want a gap", first)
		}
		// In one transaction, so that the feed sees only the second event.
		err := e.transact(t.Context(), func(tx *tx) error {
			for _, name := range []string{"a", "b"} {
				if err := tx.note(lockinfo.HistoryEvent{Kind: lockinfo.HistoryAcquired, Name: name}, modes.Fields{}, "{}"); err != nil {
					return err
				}
			}
			return tx.sql.run(`DELETE FROM event WHERE name = 'a'`)
		})
		if err != nil {
			t.Fatal(err)
		}
		if gap, event := next(), next(); gap.Kind != lockinfo.HistoryGap || event.Name != "b" {
			t.Errorf("received %+v and %+v, want a gap and b", gap, event)
		}
		stop()
		drivertest.Eventually(t, "the feed ends", func() bool {
			e.follower.mu.Lock()
			defer e.follower.mu.Unlock()
			return !e.follower.running
		})
		drivertest.Cycle(t, e, "c")
	}
	if len(heard) > 0 {
		t.Errorf("received %+v though nobody listens", <-heard)
	}
}

// TestHistoryInURL checks the URL's parameter history.
func TestHistoryInURL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	for query, want := range map[string]bool{"": false, "?history=1": true, "?history=false": false, "?history=true&allow_network=false": true} {
		e, err := OpenURL(t.Context(), "sqlite://"+path+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Capabilities().History; got != want {
			t.Errorf("%q: history %t, want %t", query, got, want)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := OpenURL(t.Context(), "sqlite://"+path+"?history=yes", nil); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("history=yes: %v, want ErrInvalid", err)
	}
}

// TestHistoryThroughput checks that history makes uncontended acquires and releases at most four
// times slower. It measures two files in the same rounds, one with history.
func TestHistoryThroughput(t *testing.T) {
	engines := [2]*Engine{openNew(t), remembering(openNew(t))}
	var took [2][]time.Duration
	for round := range 30 {
		for i := range engines {
			i = (i + round) % 2
			start := time.Now()
			for n := range 20 {
				drivertest.Cycle(t, engines[i], fmt.Sprint("t", n))
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	off, on := took[0][len(took[0])/2]/20, took[1][len(took[1])/2]/20
	t.Logf("a pair takes %s without history and %s with it: %.2f times", off, on, float64(on)/float64(off))
	if on > 4*off { // a pair is 8 statements and 3 pages, and 10 and 7 with history
		t.Errorf("a pair takes %s without history, and %s with it", off, on)
	}
}

// TestFeedAfterAQuietDay checks that the feed reports a new event even if all earlier events were
// swept meanwhile.
func TestFeedAfterAQuietDay(t *testing.T) {
	h := newHost("boot")
	e := remembering(openOn(t, h))
	off := h.open(t, e.path)
	for range 5 {
		drivertest.Cycle(t, e, "a")
	}
	heard := make(chan lockinfo.HistoryEvent, 100)
	defer e.OnEvent(func(e lockinfo.HistoryEvent) { heard <- e })()
	drivertest.Eventually(t, "the feed begins", func() bool { return len(heard) == 1 })
	h.pass(2*driver.HistoryMemory, 2*driver.HistoryMemory)
	for range 4 * sweepEvery {
		drivertest.Cycle(t, off, "work")
	}
	if n := number(t, plain(t, e.path), events); n > 1 {
		t.Fatalf("%d events were not swept: nothing was shown", n)
	}
	req := drivertest.Request("b", time.Minute)
	drivertest.Granted(t, e, req)
	drivertest.Eventually(t, "the feed goes on", func() bool { return len(heard) == 2 })
}

// TestFeedOfOtherFiles checks that a feed marks a gap when its file is deleted, when the file is
// back, and when an older database was restored.
func TestFeedOfOtherFiles(t *testing.T) {
	e := remembering(openNew(t))
	drivertest.Cycle(t, e, "a")
	var gaps atomic.Int64
	defer e.OnEvent(func(e lockinfo.HistoryEvent) {
		if e.Kind == lockinfo.HistoryGap {
			gaps.Add(1)
		}
	})()
	come := func(what string, want int64) {
		t.Helper()
		drivertest.Eventually(t, what, func() bool { return gaps.Load() >= want })
		time.Sleep(3 * feedInterval)
		if n := gaps.Load(); n != want {
			t.Errorf("%s: %d gaps, want %d", what, n, want)
		}
	}
	come("the feed begins", 1)
	check(t, os.Rename(e.path, e.path+"2"))
	come("the file is deleted", 2)
	check(t, os.Rename(e.path+"2", e.path))
	come("the file is back", 3)
	must(t, plain(t, e.path), `DELETE FROM event`) // as a restored backup
	come("the events are older", 4)
	heard := gaps.Load()
	drivertest.Cycle(t, e, "a")
	come("the feed goes on", heard)
}
