package redislock

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const remembering = "?history=1"

// historyOf returns the key of a name's history.
func historyOf(name string) string { return keyspace{}.companion("detail", name, name) + "\nhistory" }

// kindsOf returns the kinds of a name's events.
func kindsOf(t *testing.T, e *Engine, name string) (kinds []lockinfo.HistoryKind) {
	t.Helper()
	events, err := e.History(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		kinds = append(kinds, event.Kind)
	}
	return kinds
}

func wantKinds(t *testing.T, e *Engine, name string, want ...lockinfo.HistoryKind) {
	t.Helper()
	if got := kindsOf(t, e, name); !slices.Equal(got, want) {
		t.Errorf("history of %s: %v, want %v", name, got, want)
	}
}

// everyStep takes all kinds of steps on names with a common prefix. Each must succeed.
func everyStep(t *testing.T, e *Engine, begin string) {
	t.Helper()
	name := begin + "/plain"
	for range 3 {
		drivertest.Cycle(t, e, name)
	}
	name = begin + "/queue"
	held := drivertest.Request(name, time.Minute)
	drivertest.Granted(t, e, held)
	next := queued(t, e, drivertest.Request(name, time.Minute), time.Minute, 1)
	drivertest.Release(t, e, held)
	drivertest.Release(t, e, next)
	name = begin + "/shared"
	one, two := shared(name, time.Minute), shared(name, time.Minute)
	drivertest.Granted(t, e, one)
	drivertest.Granted(t, e, two)
	drivertest.Release(t, e, one)
	drivertest.Release(t, e, two)
	name = begin + "/kept"
	held = drivertest.Request(name, time.Minute)
	token := drivertest.Granted(t, e, held)
	if err := e.Release(t.Context(), driver.ReleaseRequest{Name: name, LeaseID: held.LeaseID, KeepFor: time.Minute, Lost: true}); err != nil {
		t.Errorf("release with KeepFor: %v", err)
	}
	broken, err := e.Break(t.Context(), driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: name, Token: token, Closed: true, Author: "me"})
	if err != nil || len(broken) != 1 {
		t.Errorf("break: %v, %v", broken, err)
	}
	name = begin + "/once"
	held = drivertest.Request(name, time.Minute)
	drivertest.Granted(t, e, held)
	if err := e.Complete(t.Context(), driver.CompleteRequest{Name: name, LeaseID: held.LeaseID, Record: []byte("x"), Retention: time.Minute}); err != nil {
		t.Errorf("complete: %v", err)
	}
}

var steps = []string{"plain", "queue", "shared", "kept", "once"}

// TestHistorySpoilsNothing checks that an event that cannot be recorded changes no reply.
func TestHistorySpoilsNothing(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	admin := plain(t, server)
	e := open(t, server.URL+remembering)
	t.Run("another program's key", func(t *testing.T) {
		for _, step := range steps {
			do(t, admin, "SET", historyOf("wrong/"+step), "x")
		}
		everyStep(t, e, "wrong")
		for _, step := range steps {
			if got := text(t, admin, "GET", historyOf("wrong/"+step)); got != "x" {
				t.Errorf("%s: it is %q now", step, got)
			}
		}
		if _, err := e.History(t.Context(), "wrong/plain"); err == nil {
			t.Error("a history that is none: no error")
		}
	})
	t.Run("no right", func(t *testing.T) {
		do(t, admin, "ACL SETUSER poor on >secret ~* &* +@all -rpush -rpop -ltrim -llen -lrange -pubsub")
		poor := open(t, strings.Replace(server.URL, "redis://", "redis://poor:secret@", 1)+remembering)
		everyStep(t, poor, "poor")
		if n := number(t, admin, "EXISTS", historyOf("poor/plain")); n != 0 {
			t.Error("it was written all the same")
		}
		d, err := poor.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		wantFinding(t, d, "rights", driver.Fail, "give it +rpush +rpop +ltrim +llen +lrange +pubsub")
	})
	t.Run("full server", func(t *testing.T) {
		held, waiter := drivertest.Request("full", time.Minute), drivertest.Request("full", time.Minute)
		alone := drivertest.Request("full/alone", time.Minute)
		drivertest.Granted(t, e, held)
		drivertest.Granted(t, e, alone)
		next := queued(t, e, waiter, time.Minute, 1)
		do(t, admin, "CONFIG SET maxmemory 1")
		drivertest.Release(t, e, held)
		drivertest.Release(t, e, next)
		drivertest.Release(t, e, alone)
		do(t, admin, "CONFIG SET maxmemory 0")
	})
}

// TestHistoryIsShort checks that a history has a limited number of items, and expires.
func TestHistoryIsShort(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	admin := plain(t, server)
	e := open(t, server.URL+remembering)
	least, most := driver.HistoryMemory.Milliseconds(), (28*time.Hour + time.Minute).Milliseconds() // counted from the end of a lease
	check := func(name string, events int) {
		t.Helper()
		items, ms := number(t, admin, "LLEN", historyOf(name)), number(t, admin, "PTTL", historyOf(name))
		if items > 160 || ms < least || ms > most {
			t.Errorf("%s: %d items for %d ms, want 160 at most, for %d to %d", name, items, ms, least, most)
		}
		if got := len(kindsOf(t, e, name)); got != events {
			t.Errorf("%s: %d events, want %d", name, got, events)
		}
		t.Logf("%s: %d items, %d bytes", name, items, number(t, admin, "MEMORY USAGE", historyOf(name)))
	}
	token := drivertest.Granted(t, e, drivertest.Request("pairs", time.Minute))
	if _, err := e.Break(t.Context(), driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: "pairs", Token: token, Author: "ada"}); err != nil {
		t.Fatal(err)
	}
	for range 150 {
		drivertest.Cycle(t, e, "pairs")
	}
	check("pairs", driver.MaxHistory+1)
	if kinds := kindsOf(t, e, "pairs"); kinds[0] != lockinfo.HistoryBroken {
		t.Errorf("the first event is %v, want the break, which the list does not go back to", kinds[0])
	}
	if slices.Contains(kindsOf(t, e, "pairs"), lockinfo.HistoryExpired) {
		t.Error("a lease that was given back is said to have expired")
	}
	held := drivertest.Request("places", time.Minute)
	drivertest.Granted(t, e, held)
	for range 100 {
		next := queued(t, e, drivertest.Request("places", time.Minute), time.Minute, 1)
		err := e.Release(t.Context(), driver.ReleaseRequest{Name: "places", LeaseID: next.LeaseID, Cancel: true})
		drivertest.WantIs(t, "to give a place up", err, driver.ErrLost)
	}
	check("places", driver.MaxHistory+1)
	crowd := strings.Replace(historyOf("places"), "history", "crowd", 1)
	if items, ms := number(t, admin, "LLEN", crowd), number(t, admin, "PTTL", crowd); items > 160 || ms < least || ms > most {
		t.Errorf("what those did who waited: %d items for %d ms", items, ms)
	}
	drivertest.Release(t, e, held)
	for range 50 {
		one, two := shared("shared", time.Minute), shared("shared", time.Minute)
		drivertest.Granted(t, e, one)
		drivertest.Granted(t, e, two)
		drivertest.Release(t, e, one)
		drivertest.Release(t, e, two)
	}
	check("shared", driver.MaxHistory)

	// This lease ends in another hour than it began, so the expiry of the history was not set
	// since.
	held = drivertest.Request("long", time.Minute)
	drivertest.Granted(t, e, held)
	words := strings.SplitN(text(t, admin, "GET", "long"), " ", 6)
	words[4] = "1700000000000000"
	words[3] = words[4]
	do(t, admin, "SET", "long", strings.Join(words, " "), "PX", "60000")
	do(t, admin, "PEXPIRE", historyOf("long"), "1000")
	drivertest.Release(t, e, held)
	check("long", 2)
}

// TestHistoryBesideOthers checks that steps of engines without history, and of foreign clients, are
// not recorded, and that records of the others stay correct.
func TestHistoryBesideOthers(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	admin := plain(t, server)
	e, other := open(t, server.URL+remembering), open(t, server.URL)
	const acquired, released, expired = lockinfo.HistoryAcquired, lockinfo.HistoryReleased, lockinfo.HistoryExpired

	drivertest.Cycle(t, e, "a")
	drivertest.Cycle(t, other, "a")
	do(t, admin, "SET a foreign NX PX 60000")
	drivertest.Held(t, e, drivertest.Request("a", time.Minute))
	do(t, admin, "DEL a")
	drivertest.Cycle(t, e, "a")
	wantKinds(t, e, "a", acquired, released, acquired, released)

	// Granted by an engine without history, ended by one with it.
	for range 3 {
		held := drivertest.Request("b", time.Minute)
		drivertest.Granted(t, other, held)
		drivertest.Release(t, e, held)
	}
	drivertest.Cycle(t, e, "b")
	wantKinds(t, e, "b", released, released, released, acquired, released)

	// In the reverse case the end of the lease is unknown.
	for range 2 {
		held := drivertest.Request("c", time.Minute)
		drivertest.Granted(t, e, held)
		drivertest.Release(t, other, held)
	}
	drivertest.Cycle(t, e, "c")
	wantKinds(t, e, "c", acquired, expired, acquired, expired, acquired, released)

	// With several holders, it goes unnoticed while others hold the lock.
	one, two := shared("d", time.Minute), shared("d", time.Minute)
	drivertest.Granted(t, e, one)
	drivertest.Granted(t, other, two)
	drivertest.Release(t, other, one)
	drivertest.Release(t, e, two)
	wantKinds(t, e, "d", acquired, released)
	if n := number(t, admin, "LLEN", historyOf("d")) % 2; n != 0 {
		t.Error("the number of items says that somebody has the lock")
	}
}

// TestHistoryOfReaders checks that each of several readers that are granted the lock together has
// one event, as has a reader that left before.
func TestHistoryOfReaders(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	e := open(t, server.URL+remembering)
	held := drivertest.Request("r", time.Minute)
	drivertest.Granted(t, e, held)
	var all []driver.AcquireRequest
	for i := range 3 {
		all = append(all, queued(t, e, shared("r", time.Minute), time.Minute, i+1))
	}
	drivertest.Release(t, e, held)
	for _, req := range all {
		drivertest.Release(t, e, req)
	}
	wantKinds(t, e, "r", lockinfo.HistoryAcquired, lockinfo.HistoryQueued, lockinfo.HistoryQueued, lockinfo.HistoryQueued, lockinfo.HistoryReleased,
		lockinfo.HistoryHandedOver, lockinfo.HistoryHandedOver, lockinfo.HistoryHandedOver,
		lockinfo.HistoryReleased, lockinfo.HistoryReleased, lockinfo.HistoryReleased)
}

// TestExpiredSharedLeases checks that the history has the end of each lease once, even if its keys
// expired before any request.
func TestExpiredSharedLeases(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	admin := plain(t, server)
	e := open(t, server.URL+remembering)
	var tokens []uint64
	for range 3 {
		tokens = append(tokens, drivertest.Granted(t, e, shared("s", time.Minute)))
	}
	for _, key := range (keyspace{}).state("s") {
		do(t, admin, "DEL", key)
	}
	for range 2 {
		events, err := e.History(t.Context(), "s")
		if err != nil || len(events) != 6 {
			t.Fatalf("%d events, want 6: %+v, %v", len(events), events, err)
		}
		for i, event := range events[3:] {
			if event.Kind != lockinfo.HistoryExpired || event.Token != tokens[i] || event.Mode != lockinfo.Shared {
				t.Errorf("%+v, want that the lease with token %d expired", event, tokens[i])
			}
		}
	}
}

// TestFeedIsQuiet checks that nothing is published while no client listens, and that no message has
// a lease ID. A feed that breaks reports a gap, and continues.
func TestFeedIsQuiet(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	admin := plain(t, server)
	e := open(t, server.URL+remembering)
	everyStep(t, e, "quiet")
	if n := commandStats(t, admin)["publish"]; n > 2 { // the messages of a hand-over and a break to inboxes
		t.Errorf("%d messages that nobody hears", n)
	}
	var mu sync.Mutex
	var raw []string
	var told []lockinfo.HistoryEvent
	ears := plain(t, server)
	go func() {
		_ = ears.Receive(t.Context(), ears.B().Subscribe().Channel("holdfast:inbox:0:feed").Build(), func(m rueidis.PubSubMessage) {
			mu.Lock()
			defer mu.Unlock()
			raw = append(raw, m.Message)
		})
	}()
	gaps := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, event := range told {
			if event.Kind == lockinfo.HistoryGap {
				n++
			}
		}
		return n
	}
	stop := e.OnEvent(func(event lockinfo.HistoryEvent) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, event)
	})
	defer stop()
	drivertest.Eventually(t, "the engine listens", func() bool { return gaps() == 1 })
	drivertest.Eventually(t, "we listen", func() bool {
		there, err := do(t, admin, "PUBSUB NUMSUB holdfast:inbox:0:feed").ToArray()
		if err != nil || len(there) != 2 {
			t.Fatal(there, err)
		}
		n, err := there[1].AsInt64()
		return err == nil && n == 2
	})
	everyStep(t, e, "loud")
	count := func() (n int) {
		for _, step := range steps {
			n += len(kindsOf(t, e, "loud/"+step))
		}
		return n
	}
	want := count() + 1
	drivertest.Eventually(t, "all is reported", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) == want
	})
	mu.Lock()
	for _, message := range raw {
		for word := range strings.FieldsFuncSeq(message, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) {
			if lockinfo.LeaseID(word).Valid() {
				t.Errorf("a lease ID in the message %q", message)
			}
		}
	}
	mu.Unlock()
	do(t, admin, "CLIENT KILL TYPE pubsub")
	drivertest.Eventually(t, "the engine listens again", func() bool { return gaps() >= 3 })
	drivertest.Cycle(t, e, "later")
	drivertest.Eventually(t, "what happens later is reported", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return told[len(told)-1].Kind == lockinfo.HistoryReleased && told[len(told)-1].Name == "later"
	})
	stop()
	drivertest.Eventually(t, "nobody is there to listen", func() bool {
		there, err := do(t, admin, "PUBSUB CHANNELS holdfast:inbox:0:heard").ToArray()
		return err == nil && len(there) == 0
	})
}
