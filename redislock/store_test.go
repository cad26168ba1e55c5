package redislock

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestInterop checks that holdfast and clients that lock by hand exclude each other.
func TestInterop(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)

	req := drivertest.Request("orders/42", time.Minute)
	drivertest.Granted(t, e, req)
	if got := text(t, admin, "SET orders/42 mine NX PX 60000"); got != "" {
		t.Errorf("SET NX beside a lease: %q, want nil", got)
	}
	drivertest.Release(t, e, req)

	if got := text(t, admin, "SET orders/42 mine NX PX 60000"); got != "OK" {
		t.Fatalf("SET NX after the release: %q, want OK", got)
	}
	way := drivertest.Held(t, e, drivertest.Request("orders/42", time.Minute))
	if way.Holder.Host != "" || way.ExpiresIn <= 50*time.Second || way.ExpiresIn > time.Minute {
		t.Errorf("a foreign holder shows as %+v", way)
	}
	lock, err := e.Inspect(t.Context(), "orders/42")
	if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != "" || lock.Holders[0].Token != 0 {
		t.Errorf("inspect of a foreign lock: %+v, %v", lock, err)
	}
	do(t, admin, "DEL orders/42")
	drivertest.Granted(t, e, drivertest.Request("orders/42", time.Minute))
}

// TestForeignValues checks that any other string in the key is a lock that holdfast does not
// change.
func TestForeignValues(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	id := string(lockinfo.NewLeaseID())
	for i, foreign := range []string{
		"", " ", "-", "worker-1", id, id + " 1 2", id[1:] + " 1 50 {}", "0" + id + " 1 50 {}",
		strings.Repeat("F", 32) + " 1 50 {}", "--" + id + " 1 50 {}", "\x00\xff", "nan",
		"1", "1 ", "1 " + id, "1 " + id + " 50 1", "1 " + id + " 50 1 1", "1 " + id[1:] + " 50 1 1 {}", "1 --" + id + " 50 1 1 {}", "1  " + id + " 50 1 1 {}",
		"1 " + id + "/ 50 1 1 {}", "1 " + id + "/" + id[1:] + " 50 1 1 {}", "1 " + id + "//" + id[1:] + " 50 1 1 {}",
		"2 " + id, "2 " + id[1:] + " 50 1 1 {}", "x " + id + " 50 1 1 {}", "2" + id + " 50 1 1 {}",
	} {
		name := fmt.Sprint("foreign-", i)
		do(t, admin, "SET", name, foreign)
		req := drivertest.Request(name, time.Second)
		req.LeaseID = lockinfo.LeaseID(id)
		if way := drivertest.Held(t, e, req); way.ExpiresIn != lockinfo.Never {
			t.Errorf("%q: held for %s, want Never", foreign, way.ExpiresIn)
		}
		errs := e.Extend(t.Context(), []driver.ExtendRequest{{Name: name, LeaseID: req.LeaseID, TTL: time.Second}})
		wantIs(t, fmt.Sprintf("extend over %q", foreign), errs[0], driver.ErrLost)
		err := e.Release(t.Context(), driver.ReleaseRequest{Name: name, LeaseID: req.LeaseID, Cancel: true})
		wantIs(t, fmt.Sprintf("release over %q", foreign), err, driver.ErrLost)
		lock, err := e.Inspect(t.Context(), name)
		if err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseID != "" || lock.Holders[0].ExpiresIn != lockinfo.Never {
			t.Errorf("%q: inspect %+v, %v", foreign, lock, err)
		}
		if got := text(t, admin, "GET", name); got != foreign {
			t.Errorf("%q became %q", foreign, got)
		}
		if left := number(t, admin, "PTTL", name); left != -1 {
			t.Errorf("%q was given a TTL of %d ms", foreign, left)
		}
	}
}

// TestTokensGrow checks that tokens grow whatever happens to the counter. INVARIANT I2.
func TestTokensGrow(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	const name = "t"
	last := uint64(0)
	next := func(after string, ttl time.Duration) driver.AcquireRequest {
		t.Helper()
		req := drivertest.Request(name, ttl)
		var reply driver.AcquireReply
		drivertest.Eventually(t, "a grant after "+after, func() bool {
			var err error
			reply, err = e.Acquire(t.Context(), req)
			return err == nil && reply.Outcome == driver.Granted
		})
		if reply.Token <= last {
			t.Fatalf("after %s: token %d, not above %d", after, reply.Token, last)
		}
		last = reply.Token
		return req
	}
	req := next("nothing", time.Minute)
	for range 50 {
		drivertest.Release(t, e, req)
		req = next("a release", time.Minute)
	}
	do(t, admin, "PEXPIRE t 1")
	next("an expiry", time.Minute)
	do(t, admin, "DEL t "+keyspace{}.fence(name))
	next("DEL of every key", time.Minute)
	do(t, admin, "FLUSHALL")
	next("FLUSHALL", time.Minute)
	server.Restart()
	next("a restart without data", time.Minute)

	// A counter ahead of the clock, as after a clock that went back.
	lead := last + uint64(10*time.Minute/time.Microsecond)
	do(t, admin, "SET", keyspace{}.fence(name), fmt.Sprint(lead))
	do(t, admin, "DEL t")
	next("a clock that went back", time.Minute)
	if last != lead+driver.TokenRange {
		t.Errorf("token %d after %d, want the next number", last, lead)
	}
}

// TestTokenMemory checks that the last token expires a fixed time after the token, read as a clock,
// whichever script has granted it. INVARIANT I11.
func TestTokenMemory(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	memories := map[string]time.Duration{"": driver.TokenMemory, "?token_memory=90m": 90 * time.Minute}
	for params, memory := range memories {
		e := open(t, server.URL+params)
		kept := func(what string, req driver.AcquireRequest) {
			t.Helper()
			token, fence := drivertest.Granted(t, e, req), keyspace{}.fence(req.Name)
			// PTTL and TIME in one step, so that no pause falls between.
			replies, err := do(t, admin, "EVAL", `
				local t = redis.call('TIME')
				return { redis.call('PTTL', KEYS[1]), t[1] * 1000 + math.floor(t[2] / 1000) }`, "1", fence).AsIntSlice()
			if err != nil {
				t.Fatal(err)
			}
			forget, want := replies[0]+replies[1], int64(token/1000)+memory.Milliseconds()
			if d := forget - want; d < -50 || d > 50 {
				t.Errorf("%q, %s: the token is forgotten %d ms off", params, what, d)
			}
			do(t, admin, "DEL "+req.Name)
		}
		for _, lead := range []time.Duration{0, 30 * time.Minute} {
			req := drivertest.Request("t", time.Minute)
			req.MinToken = uint64(time.Now().Add(lead).UnixMicro())
			kept("lead "+lead.String(), req)
		}
		kept("a plain request", drivertest.Request("plain", time.Minute))
		shared := drivertest.Request("t", time.Minute)
		shared.Mode = lockinfo.Shared
		kept("a shared lease", shared)
		if used := number(t, admin, "MEMORY USAGE "+keyspace{}.fence("t")); used > 240 {
			t.Errorf("a name that is not used costs %d bytes, want some 200", used)
		}
		do(t, admin, "FLUSHALL")
	}
	for _, m := range []time.Duration{-time.Hour, time.Second, 366 * 24 * time.Hour} {
		_, err := New(admin, &Options{TokenMemory: m})
		wantIs(t, m.String(), err, driver.ErrInvalid)
	}
}

// TestClockStepBack checks that a lease that ends later than its TTL allows is shortened by a
// denied request and by an extension, and by nothing else.
func TestClockStepBack(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	req := drivertest.Request("t", 30*time.Second)
	token := drivertest.Granted(t, e, req)
	inRange := func(what string, left, low, high int64) {
		t.Helper()
		if left < low || left > high {
			t.Errorf("%s: %d ms left, want %d to %d", what, left, low, high)
		}
	}
	for _, step := range []string{"PEXPIRE t 3600000", "PERSIST t"} {
		do(t, admin, step)
		lock, err := e.Inspect(t.Context(), "t")
		if err != nil || len(lock.Holders) != 1 {
			t.Fatalf("inspect: %+v, %v", lock, err)
		}
		inRange("inspect", lock.Holders[0].ExpiresIn.Milliseconds(), 20000, 30000)
		way := drivertest.Held(t, e, drivertest.Request("t", time.Second))
		inRange("denied", way.ExpiresIn.Milliseconds(), 20000, 30000)
		inRange("after the denial of "+step, number(t, admin, "PTTL t"), 20000, 30000)

		do(t, admin, step)
		errs := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "t", LeaseID: req.LeaseID, TTL: time.Second}})
		if errs[0] != nil {
			t.Error(errs[0])
		}
		inRange("after a short extend and "+step, number(t, admin, "PTTL t"), 20000, 30000)

		do(t, admin, step)
		if again := drivertest.Granted(t, e, req); again != token {
			t.Errorf("a repeat has token %d, not %d", again, token)
		}
		inRange("after a repeat and "+step, number(t, admin, "PTTL t"), 20000, 30000)
	}
	// A lease that was extended to a longer TTL is not shortened to the first one.
	errs := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "t", LeaseID: req.LeaseID, TTL: time.Hour}})
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	drivertest.Held(t, e, drivertest.Request("t", time.Second))
	inRange("after a long extend", number(t, admin, "PTTL t"), 3500000, 3600000)
}

// TestDenialWritesNothing compares all data in the store.
func TestDenialWritesNothing(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
	before := dump(t, admin)
	for range 3 {
		drivertest.Held(t, e, drivertest.Request("t", time.Minute))
	}
	req := drivertest.Request("other", time.Minute)
	req.MinToken = uint64(time.Now().Add(2 * time.Hour).UnixMicro())
	_, err := e.Acquire(t.Context(), req)
	wantIs(t, "a MinToken far ahead", err, driver.ErrInvalid)
	if after := dump(t, admin); !maps.Equal(before, after) {
		t.Errorf("the store was %v and is %v", before, after)
	}
}

// dump returns all keys with their values and ends.
func dump(t *testing.T, admin rueidis.Client) map[string]string {
	t.Helper()
	keys, err := do(t, admin, "KEYS *").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, key := range keys {
		held := text(t, admin, "DUMP", key)
		if text(t, admin, "TYPE", key) == "hash" { // the order of a hash changes by itself
			fields, err := do(t, admin, "HGETALL", key).AsStrMap()
			if err != nil {
				t.Fatal(err)
			}
			held = fmt.Sprint(fields)
		}
		all[key] = fmt.Sprintf("%q until %d", held, number(t, admin, "PEXPIRETIME", key))
	}
	return all
}

// TestScriptsComeBack checks that scripts run after the server forgot them.
func TestScriptsComeBack(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	for _, forget := range []func(){
		func() {}, func() { do(t, admin, "SCRIPT FLUSH") },
		func() { server.Restart(); do(t, admin, "PING") },
	} {
		forget()
		req := drivertest.Request("t", time.Minute)
		drivertest.Eventually(t, "an answer", func() bool {
			reply, err := e.Acquire(t.Context(), req)
			return err == nil && reply.Outcome == driver.Granted
		})
		if errs := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "t", LeaseID: req.LeaseID, TTL: time.Minute}}); errs[0] != nil {
			t.Fatal(errs[0])
		}
		if _, err := e.Inspect(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		drivertest.Release(t, e, req)
	}
}

// TestCost counts the commands that reach the server.
func TestCost(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	cycle := func() { drivertest.Cycle(t, e, "t") }
	var batch []driver.ExtendRequest
	for i := range 100 {
		req := drivertest.Request(fmt.Sprint("batch-", i), time.Minute)
		drivertest.Granted(t, e, req)
		batch = append(batch, driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: time.Hour})
	}
	extend := func() {
		for i, err := range e.Extend(t.Context(), batch) {
			if err != nil {
				t.Fatalf("extend %d: %v", i, err)
			}
		}
	}
	cycle() // from now on the server knows the scripts
	extend()
	for _, c := range []struct {
		what string
		run  func()
		want map[string]int64 // commands, including those inside the scripts
	}{
		{"acquire and release", cycle, map[string]int64{
			"evalsha": 2, // the only commands of clients; the others run in scripts
			"exists":  2, "get": 1, "time": 1, "set": 2, "del": 1,
		}},
		{"extend of 100", extend, map[string]int64{"evalsha": 1, "time": 1, "get": 100, "pexpire": 100}},
	} {
		do(t, admin, "CONFIG RESETSTAT")
		c.run()
		got := commandStats(t, admin)
		delete(got, "config|resetstat")
		delete(got, "ping") // idle connections send it once a second
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: commands %v, want %v", c.what, got, c.want)
		}
	}
}

// commandStats returns how often each command ran since the last reset.
func commandStats(t *testing.T, admin rueidis.Client) map[string]int64 {
	t.Helper()
	stats := map[string]int64{}
	for line := range strings.Lines(text(t, admin, "INFO commandstats")) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		var n int64
		if _, err := fmt.Sscanf(rest, "%d,", &n); err != nil {
			t.Fatal(err)
		}
		stats[name] = n
	}
	return stats
}

// TestTombstone checks that a cancel leaves a tombstone for a bounded time, with or without a
// lease. INVARIANT I5.
func TestTombstone(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	for _, first := range []bool{false, true} {
		name := fmt.Sprint("first ", first) // so that the engine knows nothing of the name
		req := drivertest.Request(name, time.Minute)
		if first {
			drivertest.Granted(t, e, req)
		}
		err := e.Release(t.Context(), driver.ReleaseRequest{Name: name, LeaseID: req.LeaseID, Cancel: true})
		if first && err != nil || !first && err != driver.ErrLost {
			t.Errorf("cancel: %v", err)
		}
		left := number(t, admin, "PTTL", keyspace{}.tombstone(name, req.LeaseID))
		if left < 40000 || left > 60000 {
			t.Errorf("the tombstone lasts %d ms, want a minute", left)
		}
		reply, err := e.Acquire(t.Context(), req)
		if err != nil || reply.Outcome != driver.Cancelled {
			t.Errorf("an acquire after its cancel: %+v, %v", reply, err)
		}
		if n := number(t, admin, "EXISTS", name); n != 0 {
			t.Error("the cancelled acquire left a lock")
		}
	}
}
