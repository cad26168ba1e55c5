package redislock

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A contest is a lock that holdfast's clients hand on, and a foreign client that wants it.
type contest struct {
	*testing.T
	e      *Engine
	admin  rueidis.Client
	holder driver.AcquireRequest
	first  driver.AcquireRequest // in the queue, behind the holder
}

// newContest begins a contest in which holdfast's clients have had the lock for a long time.
func newContest(t *testing.T, e *Engine, admin rueidis.Client) *contest {
	t.Helper()
	c := &contest{T: t, e: e, admin: admin, holder: drivertest.Request("t", time.Minute)}
	drivertest.Granted(t, e, c.holder)
	c.first = queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
	c.turns()
	c.note("ours", -time.Second)
	return c
}

// turns hands the lock on once: the script then begins to count.
func (c *contest) turns() {
	c.Helper()
	c.release()
	c.holder = c.first
	c.first = queued(c.T, c.e, drivertest.Request("t", time.Minute), time.Minute, 1)
}

func (c *contest) release() {
	c.Helper()
	if err := c.e.Release(c.Context(), driver.ReleaseRequest{Name: "t", LeaseID: c.holder.LeaseID}); err != nil {
		c.Fatal(err)
	}
}

// clock returns the server's clock in ms.
func (c *contest) clock() int64 {
	c.Helper()
	parts, err := c.admin.Do(c.Context(), c.admin.B().Time().Build()).AsStrSlice()
	if err != nil {
		c.Fatal(err)
	}
	s, _ := strconv.ParseInt(parts[0], 10, 64)
	us, _ := strconv.ParseInt(parts[1], 10, 64)
	return s*1000 + us/1000
}

// note sets the time that the script remembers to the server's clock and d.
func (c *contest) note(field string, d time.Duration) {
	c.Helper()
	do(c.T, c.admin, "HSET", c.detail(), field, strconv.FormatInt(c.clock()+d.Milliseconds(), 10))
}

func (c *contest) noted(field string) int64 {
	c.Helper()
	return number(c.T, c.admin, "HGET", c.detail(), field)
}

func (c *contest) detail() string { return keyspace{}.companion(kindDetail, "t", "t") }

// A lock that is contended all the time is left free now and then, and a client that polls gets it.
// When it releases the lock, the queue continues.
func TestLockIsLeftFreeForOthers(t *testing.T) {
	server := testsvc.Redis(t)
	c := newContest(t, open(t, server.URL), plain(t, server))
	c.release() // no client requests it, so the lock stays free
	if got := text(t, c.admin, "SET t mine NX PX 60000"); got != "OK" {
		t.Fatalf("SET NX after %q: %q", "release", got)
	}
	reply := refresh(t, c.e, c.first)
	if reply.Outcome != driver.Held || reply.Place != 1 || !reply.Foreign {
		t.Errorf("the head, while another client has the lock: %+v", reply)
	}
	if seen := c.clock() - c.noted("alien"); seen < 0 || seen > time.Minute.Milliseconds() {
		t.Errorf("the other client was noted %d ms ago", seen)
	}
	do(t, c.admin, "DEL t")
	handed(t, c.e, c.first)
}

// After a foreign client was seen, the lock is left free for longer.
func TestLockIsLeftFreeForLongerWhereOthersAre(t *testing.T) {
	server := testsvc.Redis(t)
	c := newContest(t, open(t, server.URL), plain(t, server))
	for alien, want := range map[time.Duration]int64{0: 2, -time.Second: 20, -59 * time.Second: 20, -2 * time.Minute: 2} {
		if alien != 0 {
			c.note("alien", alien)
		}
		c.note("ours", -time.Second)
		before := c.clock()
		c.release()
		if gap := c.noted("gap"); gap < before+want || gap > c.clock()+want {
			t.Errorf("another client seen %s ago: free until %d ms after the release began, want %d", -alien, gap-before, want)
		}
		if got := c.noted("gap") - c.noted("ours"); got != 0 {
			t.Errorf("our turns begin %d ms before the end of the gap", got)
		}
		drivertest.Eventually(t, "the head has its turn", func() bool { return refresh(t, c.e, c.first).Outcome == driver.Granted })
		c.holder = c.first
		c.first = queued(t, c.e, drivertest.Request("t", time.Minute), time.Minute, 1)
	}
}

// While the lock is left free, no client of holdfast takes it.
func TestNobodyOfOursUsesTheGap(t *testing.T) {
	server := testsvc.Redis(t)
	c := newContest(t, open(t, server.URL), plain(t, server))
	const attempts = 100 // the machine may be slower than the gap
	for range attempts {
		c.note("alien", -time.Second)
		c.note("ours", -time.Second)
		c.release()
		gap := c.noted("gap") // the next grant deletes it
		reply := refresh(t, c.e, c.first)
		try, err := c.e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		inTime := c.clock() < gap
		if inTime && (reply.Outcome != driver.Held || reply.ExpiresIn > 20*time.Millisecond || try.Outcome != driver.Held) {
			t.Fatalf("in the gap: the head was answered %+v, another request %+v", reply, try)
		}
		if inTime {
			return
		}
		drivertest.Eventually(t, "the head has its turn", func() bool { return refresh(t, c.e, c.first).Outcome == driver.Granted })
		c.holder = c.first
		c.first = queued(t, c.e, drivertest.Request("t", time.Minute), time.Minute, 1)
	}
	t.Errorf("in %d attempts no request arrived within 20 ms", attempts)
}

// The head gets a notice to look when the gap ends.
func TestHeadIsToldOfTheEndOfTheGap(t *testing.T) {
	server := testsvc.Redis(t)
	e := open(t, server.URL)
	early := e.Watch(lockinfo.NewLeaseID())
	defer early.Stop()
	drivertest.Granted(t, e, drivertest.Request("other", time.Minute))
	queued(t, e, drivertest.Request("other", time.Minute), time.Minute, 1)
	told(t, early) // the subscription exists
	c := newContest(t, e, plain(t, server))
	w := c.e.Watch(c.first.LeaseID)
	defer w.Stop()
	began := time.Now()
	c.release()
	if notice := told(t, w); notice.Token != 0 {
		t.Errorf("a notice of a grant in the gap: %+v", notice)
	}
	if took := time.Since(began); took < time.Millisecond {
		t.Errorf("notified after %s, while the lock is left free for 2 ms", took)
	}
	handed(t, c.e, c.first)
}

// With NoForeignClients the lock is always handed on.
func TestNoForeignClients(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	e := engineOn(t, admin, &Options{NoForeignClients: true})
	t.Cleanup(func() { _ = e.Close() })
	if _, opts, err := parseURL(server.URL + "?foreign=0"); err != nil || !opts.NoForeignClients {
		t.Errorf("the URL's foreign=0 is not the option: %+v, %v", opts, err)
	}
	c := newContest(t, e, admin)
	c.release()
	if text(t, admin, "GET t") == "" {
		t.Error("the lock was left free")
	}
	handed(t, e, c.first)
	c.holder = c.first
	c.first = queued(t, e, drivertest.Request("t", time.Minute), time.Minute, 1)
	do(t, admin, "SET t mine PX 60000")
	if reply := refresh(t, e, c.first); reply.Foreign {
		t.Errorf("the head, while another client has the lock: %+v", reply)
	}
}

// A clock that went back keeps the lock free neither for ever nor for no time.
func TestGapAfterTheClockWentBack(t *testing.T) {
	server := testsvc.Redis(t)
	c := newContest(t, open(t, server.URL), plain(t, server))
	c.note("ours", time.Hour)
	c.note("alien", time.Hour)
	c.note("gap", time.Hour)
	queued(t, c.e, drivertest.Request("t", time.Minute), time.Minute, 2)
	c.release()
	if text(t, c.admin, "GET t") == "" {
		t.Error("the lock was left free")
	}
	handed(t, c.e, c.first)
	if late := c.noted("ours") - c.clock(); late > 0 {
		t.Errorf("our turns begin in %d ms", late)
	}
}

// Without foreign clients this happens every 250 ms at most, however fast the turns are.
func TestGapsAreRare(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	var gaps atomic.Int64
	conn, stop := admin.Dedicate()
	defer stop()
	conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) {
		if strings.HasSuffix(m.Message, " 0 2") {
			gaps.Add(1)
		}
	}})
	if err := conn.Do(t.Context(), conn.B().Psubscribe().Pattern("holdfast:inbox:*").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	l := &ledger{working: map[string][]driver.AcquireRequest{}, last: map[string]uint64{}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for time.Since(began) < time.Second && !t.Failed() {
				req := drivertest.Request("t", longTTL)
				req.Queue, req.WaiterTTL = true, longPlace
				token := await(t.Context(), t, e, req)
				l.begin(t, req, token)
				l.end(req)
				if err := e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	most := int64(time.Since(began)/(250*time.Millisecond)) + 1
	if n := gaps.Load(); n == 0 || n > most {
		t.Errorf("the lock was left free %d times in %s and %d turns, want 1 to %d", n, time.Since(began), l.granted, most)
	}
}
