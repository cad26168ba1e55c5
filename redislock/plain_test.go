package redislock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// TestPlainAcquires checks that a bad request in a call, or one that is not plain, does not affect
// the others. INVARIANTS I1, I2, I5, I12.
func TestPlainAcquires(t *testing.T) { untilTogether(t, plainAcquires) }

func plainAcquires(t *testing.T, admin rueidis.Client, e *Engine, g *gate) bool {
	other := g.around
	clock := func() uint64 { return uint64(time.Now().UnixMicro()) }
	lead := clock() + uint64(time.Hour.Microseconds())
	granted := func(least uint64) func(*testing.T, driver.AcquireReply, error) {
		return func(t *testing.T, reply driver.AcquireReply, err error) {
			if err != nil || reply.Outcome != driver.Granted || reply.Token < least {
				t.Errorf("%+v, %v; want a token from %d on", reply, err, least)
			}
		}
	}
	fails := func(want error) func(*testing.T, driver.AcquireReply, error) {
		return func(t *testing.T, _ driver.AcquireReply, err error) { wantIs(t, "acquire", err, want) }
	}
	is := func(want driver.Outcome) func(*testing.T, driver.AcquireReply, error) {
		return func(t *testing.T, reply driver.AcquireReply, err error) {
			if err != nil || reply.Outcome != want {
				t.Errorf("%+v, %v; want outcome %v", reply, err, want)
			}
		}
	}
	var first atomic.Int32
	once := func(t *testing.T, reply driver.AcquireReply, err error) {
		if err == nil && reply.Outcome == driver.Granted {
			first.Add(1)
		} else if err != nil || reply.Outcome != driver.Held {
			t.Errorf("%+v, %v", reply, err)
		}
	}
	before := clock()
	cases := []struct {
		name string
		set  []string // a command that runs first
		want func(*testing.T, driver.AcquireReply, error)
	}{
		{"n/free", nil, granted(before)},
		{"n/fence is a list", []string{"RPUSH", keyspace{}.fence("n/fence is a list"), "x"}, fails(driver.ErrKindMismatch)},
		{"n/fence leads", []string{"SET", keyspace{}.fence("n/fence leads"), fmt.Sprint(lead)}, granted(lead + driver.TokenRange)},
		{"n/fence is short", []string{"SET", keyspace{}.fence("n/fence is short"), "999"}, granted(before)},
		{"n/fence is long", []string{"SET", keyspace{}.fence("n/fence is long"), "00000000000000001"}, granted(before)},
		{"n/fence is too long", []string{"SET", keyspace{}.fence("n/fence is too long"), "10000000000000000"}, fails(driver.ErrKindMismatch)},
		{"n/fence is older", []string{"SET", keyspace{}.fence("n/fence is older"), fmt.Sprint(before - 1)}, granted(before)},
		{"n/fence is words", []string{"SET", keyspace{}.fence("n/fence is words"), "0x11111111111111"}, fails(driver.ErrKindMismatch)},
		{"n/lock is a hash", []string{"HSET", "n/lock is a hash", "a", "b"}, fails(driver.ErrKindMismatch)},
		{"n/foreign", []string{"SET", "n/foreign", "x"}, is(driver.Held)},
		{"n/layout", []string{"SET", "n/layout", "9 " + strings.Repeat("0", 32) + " 1 2 {}"}, fails(driver.ErrKindMismatch)},
		{"n/waited for", nil, is(driver.Held)},
		{"n/cancelled", nil, is(driver.Cancelled)},
		{"n/twice", nil, once},
		{"n/twice", nil, once},
		{"n/last", nil, granted(before)},
	}
	var requests []func()
	for _, c := range cases {
		req := drivertest.Request(c.name, time.Minute)
		if c.set != nil {
			do(t, admin, c.set[0], c.set[1:]...)
		}
		switch c.name {
		case "n/cancelled":
			do(t, admin, "SET", keyspace{}.tombstone(req.Name, req.LeaseID), "")
		case "n/waited for": // and free, because its key was deleted
			drivertest.Granted(t, other, drivertest.Request(c.name, time.Minute))
			queued(t, other, drivertest.Request(c.name, time.Minute), time.Minute, 1)
			do(t, admin, "DEL", c.name)
		}
		requests = append(requests, func() {
			reply, err := e.Acquire(t.Context(), req)
			t.Run(c.name, func(t *testing.T) { c.want(t, reply, err) })
		})
	}
	together := g.together(t, acquiring(e), requests...)
	if n := first.Load(); n != 1 {
		t.Errorf("%d of two have one lock", n)
	}
	for name, want := range map[string]int64{"n/fence is a list": 0, "n/fence is words": 0, "n/cancelled": 0, "n/foreign": 1, "n/last": 1} {
		if n := number(t, admin, "EXISTS", name); n != want {
			t.Errorf("EXISTS %q: %d, want %d", name, n, want)
		}
	}
	for key, want := range map[string]time.Duration{"n/last": time.Minute, keyspace{}.fence("n/last"): driver.TokenMemory} {
		if left := time.Duration(number(t, admin, "PTTL", key)) * time.Millisecond; left > want || left < want-20*time.Second {
			t.Errorf("%q lasts %s, want %s", key, left, want)
		}
	}
	const plain = 6 // free, short, long, older, the first of two, last
	if n := g.inFull(); together && n != len(cases)-plain {
		t.Errorf("%d requests were made in full, want all of %d but %d", n, len(cases), plain)
	}
	return together
}

// TestTokensInFull checks that a token drawn by the full script is above the last one and not below
// the clock, as a plain one is. INVARIANT I2.
func TestTokensInFull(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	for i := range 3 {
		before := uint64(time.Now().UnixMicro())
		req := shared("t", time.Minute)
		if token := drivertest.Granted(t, e, req); token < before {
			t.Errorf("token %d, and the clock showed %d", token, before)
		}
		drivertest.Release(t, e, req)
		if i == 1 {
			do(t, admin, "FLUSHALL")
		}
	}
}

// TestPlainReleases checks the same for releases. INVARIANTS I4, I7.
func TestPlainReleases(t *testing.T) {
	untilTogether(t, func(t *testing.T, admin rueidis.Client, e *Engine, g *gate) bool {
		return plainReleases(t, admin, e, g, false)
	})
}

// TestPlainCancels checks the same for cancels, each of which is remembered. INVARIANT I5.
func TestPlainCancels(t *testing.T) {
	untilTogether(t, func(t *testing.T, admin rueidis.Client, e *Engine, g *gate) bool {
		return plainReleases(t, admin, e, g, true)
	})
}

func plainReleases(t *testing.T, admin rueidis.Client, e *Engine, g *gate, cancel bool) bool {
	other := g.around
	held := func(name string) driver.AcquireRequest {
		req := drivertest.Request(name, time.Minute)
		drivertest.Granted(t, other, req)
		return req
	}
	waited := held("n/waited for")
	heir := queued(t, other, drivertest.Request(waited.Name, time.Minute), time.Minute, 1)
	closed := held("n/kept closed")
	if err := other.Release(t.Context(), driver.ReleaseRequest{Name: closed.Name, LeaseID: closed.LeaseID, KeepFor: time.Minute}); err != nil {
		t.Fatal(err)
	}
	near := held("n/another lease ID")
	near.LeaseID = near.LeaseID[:31] + lockinfo.LeaseID("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", near.LeaseID[31])+1)%16])
	hash := drivertest.Request("n/hash", time.Minute)
	do(t, admin, "HSET", hash.Name, "a", "b")
	foreign := drivertest.Request("n/foreign", time.Minute)
	do(t, admin, "SET", foreign.Name, "x")
	newer := drivertest.Request("n/newer", time.Minute)
	do(t, admin, "SET", newer.Name, "99 "+string(newer.LeaseID)+" 60000 1 1 {}")
	several := shared("n/several", time.Minute)
	drivertest.Granted(t, other, several)
	cases := []struct {
		req   driver.AcquireRequest
		want  error
		stays int64 // 1 if its key remains
	}{
		{held("n/first"), nil, 0},
		{waited, nil, 1},
		{closed, driver.ErrLost, 1},
		{near, driver.ErrLost, 1},
		{drivertest.Request("n/free", time.Minute), driver.ErrLost, 0},
		{hash, driver.ErrLost, 1},
		{foreign, driver.ErrLost, 1},
		{newer, driver.ErrKindMismatch, 1},
		{several, nil, 0},
		{held("n/last"), nil, 0},
	}
	var requests []func()
	for _, c := range cases {
		requests = append(requests, func() {
			err := e.Release(t.Context(), driver.ReleaseRequest{Name: c.req.Name, LeaseID: c.req.LeaseID, Cancel: cancel})
			wantIs(t, c.req.Name, err, c.want)
			if c.want == nil && err != nil {
				t.Errorf("%s: %v", c.req.Name, err)
			}
		})
	}
	once := held("n/twice")
	var ended atomic.Int32
	for range 2 {
		requests = append(requests, func() {
			if e.Release(t.Context(), driver.ReleaseRequest{Name: once.Name, LeaseID: once.LeaseID, Cancel: cancel}) == nil {
				ended.Add(1)
			}
		})
	}
	sent := releasing(e)
	if cancel {
		sent = cancelling(e)
	}
	together := g.together(t, sent, requests...)
	if n := ended.Load(); n != 1 {
		t.Errorf("%d of two have ended one lease", n)
	}
	for _, c := range cases {
		if n := number(t, admin, "EXISTS", c.req.Name); n != c.stays {
			t.Errorf("EXISTS %q: %d, want %d", c.req.Name, n, c.stays)
		}
		if cancel && c.req.Name != newer.Name && number(t, admin, "EXISTS", keyspace{}.tombstone(c.req.Name, c.req.LeaseID)) != 1 {
			t.Errorf("%q: the cancel is not remembered", c.req.Name)
		}
	}
	if lock, err := e.Inspect(t.Context(), heir.Name); err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != heir.LeaseID {
		t.Errorf("the lock that was waited for: %+v, %v", lock, err)
	}
	return together
}

// TestPlainRenewals checks that a lease renewed by its key alone lasts for its TTL from now,
// whatever its end was. The full script renews the others, or reports what they are. INVARIANTS I4,
// I6.
func TestPlainRenewals(t *testing.T) {
	server := testsvc.Redis(t)
	admin, e := plain(t, server), open(t, server.URL)
	held := func(name string) driver.AcquireRequest {
		req := drivertest.Request(name, time.Minute)
		drivertest.Granted(t, e, req)
		return req
	}
	soon, persisted, far, longer, stale := held("soon"), held("persisted"), held("far"), held("longer"), held("stale")
	do(t, admin, "PEXPIRE", soon.Name, "5000")
	do(t, admin, "PERSIST", persisted.Name)
	do(t, admin, "PEXPIRE", far.Name, "3600000")
	longer.TTL = 2 * time.Minute
	stale.LeaseID = lockinfo.NewLeaseID()
	do(t, admin, "PEXPIRE", stale.Name, "5000")
	several, hash := shared("several", time.Minute), drivertest.Request("hash", time.Minute)
	drivertest.Granted(t, e, several)
	do(t, admin, "HSET", hash.Name, "a", "b")
	reqs := []driver.AcquireRequest{soon, persisted, hash, far, longer, stale, several, drivertest.Request("free", time.Minute)}
	wants := []error{nil, nil, driver.ErrLost, nil, nil, driver.ErrLost, nil, driver.ErrLost}
	for round := range 2 { // in the second round all live leases but the shared one are plain
		var batch []driver.ExtendRequest
		for _, r := range reqs {
			batch = append(batch, driver.ExtendRequest{Name: r.Name, LeaseID: r.LeaseID, TTL: r.TTL})
		}
		for i, err := range e.Extend(t.Context(), batch) {
			wantIs(t, fmt.Sprint(round, reqs[i].Name), err, wants[i])
			if wants[i] != nil {
				continue
			}
			if left := number(t, admin, "PTTL", reqs[i].Name); err != nil || left > reqs[i].TTL.Milliseconds() || left < reqs[i].TTL.Milliseconds()-20000 {
				t.Errorf("round %d: %q lasts %d ms more, %v", round, reqs[i].Name, left, err)
			}
		}
	}
	if value := text(t, admin, "GET", longer.Name); !strings.Contains(value, string(longer.LeaseID)+" 120000 ") {
		t.Errorf("a lease that was made longer says %q", value)
	}
	if left := number(t, admin, "PTTL", stale.Name); left > 5000 {
		t.Errorf("a stale holder has made the lease last %d ms more", left)
	}
	if n := number(t, admin, "EXISTS", "free"); n != 0 {
		t.Error("a renewal has made a lease")
	}
}

// TestPlainOnFullServer checks that a server whose memory is full refuses acquires and changes
// nothing, and that leases are renewed and released.
func TestPlainOnFullServer(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	e, g := behindGate(t, server)
	var held []driver.AcquireRequest
	for i := range 3 {
		held = append(held, drivertest.Request(fmt.Sprint("n/held", i), time.Minute))
		drivertest.Granted(t, e, held[i])
	}
	var requests []func()
	for i := range 3 {
		requests = append(requests, func() {
			_, err := e.Acquire(t.Context(), drivertest.Request(fmt.Sprint("n/", i), time.Minute))
			wantIs(t, "acquire", err, driver.ErrUnavailable)
		})
	}
	before := dump(t, admin)
	do(t, admin, "CONFIG", "SET", "maxmemory", "1")
	g.together(t, acquiring(e), requests...)
	if after := dump(t, admin); !maps.Equal(before, after) {
		t.Errorf("the store was %v and is %v", before, after)
	}
	for _, req := range held {
		if err := e.Extend(t.Context(), []driver.ExtendRequest{{Name: req.Name, LeaseID: req.LeaseID, TTL: req.TTL}})[0]; err != nil {
			t.Errorf("extend: %v", err)
		}
		if err := e.Release(t.Context(), driver.ReleaseRequest{Name: req.Name, LeaseID: req.LeaseID}); err != nil {
			t.Errorf("release: %v", err)
		}
	}
}

// A plainOnly connection fails all calls of the full scripts.
type plainOnly struct{ rediscore.Conn }

var errInFull = errors.New("test: asked in full")

func (plainOnly) EvalSHA(context.Context, string, []string, []string) (any, error) {
	return nil, errInFull
}

// TestPlainPutsBack checks that a refused plain request leaves the last token as it was, and
// remembered for long enough. INVARIANTS I2, I11.
func TestPlainPutsBack(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	conn := plainOnly{open(t, server.URL).Store().Conn()}
	e, err := newEngine(conn, &rediscore.Options{History: true, TokenMemory: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ahead := fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())
	for last, lasts := range map[string]time.Duration{"": 0, ahead: time.Hour + time.Minute, "0x11111111111111": time.Minute, "10000000000000000": time.Minute} {
		do(t, admin, "FLUSHALL")
		name := "n" + last // the engine remembers that an earlier name is not plain
		fence := keyspace{}.fence(name)
		if last != "" {
			do(t, admin, "SET", fence, last)
		}
		do(t, admin, "RPUSH", keyspace{}.companion(kindDetail, name, name)+"\nhistory", "a") // the end of a lease was not recorded
		if _, err := e.Acquire(t.Context(), drivertest.Request(name, time.Second)); !errors.Is(err, errInFull) {
			t.Errorf("last token %q: %v", last, err)
		}
		left := time.Duration(number(t, admin, "PTTL", fence)) * time.Millisecond
		if now := text(t, admin, "GET", fence); now != last || last != "" && (left-lasts).Abs() > 30*time.Second {
			t.Errorf("last token %q: it is %q, for %s", last, now, left)
		}
	}
	_ = e.Close() // this closes the connection, too
}
