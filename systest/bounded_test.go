package systest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// What one call may cost a server, however many wait for a name or hold it.
const (
	mostCommands = 2000
	longestCall  = 2 * time.Millisecond
)

// A crowd is a name with very many leases or places, to be copied.
type crowd struct {
	*store
	name string
	n    int
	reqs []driver.AcquireRequest // of the crowd
	head driver.AcquireRequest   // the holder for whom they wait, if they do
}

// newCrowd makes n shared leases or, with wait, places behind an exclusive
// one. Every other place is for work that is to be done once.
func newCrowd(t *testing.T, s *store, n int, wait bool) *crowd {
	t.Helper()
	c := &crowd{store: s, name: fmt.Sprintf("crowd-%d-%v", n, wait), n: n}
	if wait {
		c.head = drivertest.Request(c.name, time.Hour)
		drivertest.Granted(t, s.engine, c.head)
	}
	for i := range n {
		req := drivertest.Request(c.name, time.Hour)
		req.Mode = driver.Shared
		if wait {
			req.Queue, req.WaiterTTL, req.Once = true, time.Hour, i%2 == 1
		}
		c.reqs = append(c.reqs, req)
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if reply, err := s.engine.Acquire(t.Context(), c.reqs[i]); err != nil || (reply.Outcome == driver.Granted) == wait {
					t.Errorf("acquire: %+v, %v", reply, err)
				}
			}
		})
	}
	wg.Wait()
	return c
}

// key returns the name of a companion, as the package doc has it.
func key(kind, name string) string { return "holdfast:{" + name + "}:" + kind + ":" + name }

// copyTo makes a name that is like the crowd's, and returns the requests as
// those of this name.
func (c *crowd) copyTo(t *testing.T, name string) *crowd {
	t.Helper()
	c.do(t, "COPY", c.name, name)
	for _, kind := range []string{"fence", "holders", "queue", "waiters", "detail"} {
		c.do(t, "COPY", key(kind, c.name), key(kind, name))
	}
	d := &crowd{store: c.store, name: name, n: c.n, reqs: slices.Clone(c.reqs), head: c.head}
	d.head.Name = name
	for i := range d.reqs {
		d.reqs[i].Name = name
	}
	return d
}

// ends makes all members of a sorted set end so much later.
func (c *crowd) later(t *testing.T, kind string, by time.Duration) {
	t.Helper()
	c.do(t, "EVAL", `local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
		for i = 1, #all, 2 do redis.call('ZADD', KEYS[1], all[i + 1] + ARGV[1], all[i]) end`,
		"1", key(kind, c.name), strconv.FormatInt(by.Milliseconds(), 10))
}

// count returns the size of a sorted set.
func (c *crowd) count(t *testing.T, kind string) int {
	t.Helper()
	n, err := c.do(t, "ZCARD", key(kind, c.name)).AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// A call that is watched: what one script call cost the server.
type watched struct {
	rueidis.Client
	store *store
	t     *testing.T
	mu    sync.Mutex
	most  int             // commands inside one call
	calls []time.Duration // how long each took, by the server's own log
	after func(int)       // runs after each call, with its number
	limit int             // after so many calls the server is out of reach, unless 0
}

func (w *watched) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !strings.HasPrefix(cmd.Commands()[0], "EVAL") {
		return w.Client.Do(ctx, cmd)
	}
	if w.limit > 0 && len(w.calls) >= w.limit {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return w.Client.Do(ended, cmd)
	}
	w.store.do(w.t, "CONFIG", "RESETSTAT")
	w.store.do(w.t, "SLOWLOG", "RESET")
	r := w.Client.Do(ctx, cmd)
	if redisErr, ok := rueidis.IsRedisErr(r.Error()); ok && strings.HasPrefix(redisErr.Error(), "NOSCRIPT") {
		return r
	}
	w.most = max(w.most, w.inner())
	w.calls = append(w.calls, w.longest())
	if w.after != nil {
		w.after(len(w.calls))
	}
	return r
}

var statLine = regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`)

// inner returns how many commands scripts have run since the last reset.
func (w *watched) inner() (total int) {
	info, err := w.store.do(w.t, "INFO", "commandstats").ToString()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range statLine.FindAllStringSubmatch(info, -1) {
		if slices.Contains([]string{"evalsha", "eval", "ping", "info"}, m[1]) || strings.Contains(m[1], "|") {
			continue
		}
		n, err := strconv.Atoi(m[2])
		if err != nil {
			w.t.Fatal(err)
		}
		total += n
	}
	return total
}

// longest returns how long the longest script has run since the last reset.
func (w *watched) longest() (most time.Duration) {
	entries, err := w.store.do(w.t, "SLOWLOG", "GET", "16").ToArray()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		fields, err := e.ToArray()
		if err != nil {
			w.t.Fatal(err)
		}
		words, err := fields[3].AsStrSlice()
		if err != nil {
			w.t.Fatal(err)
		}
		if us, err := fields[2].AsInt64(); err == nil && strings.HasPrefix(words[0], "EVAL") {
			most = max(most, time.Duration(us)*time.Microsecond)
		}
	}
	return most
}

// watch returns an engine of which every call is watched.
func (s *store) watch(t *testing.T) (*redislock.Engine, *watched) {
	t.Helper()
	s.do(t, "CONFIG", "SET", "slowlog-log-slower-than", "0")
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.server.Addr}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w := &watched{Client: client, store: s, t: t}
	e := redislock.New(w, nil)
	t.Cleanup(func() { _ = e.Close() })
	return e, w
}

// A deed is something that many leases or places could make long.
type deed struct {
	what string
	wait bool // the crowd waits
	do   func(t *testing.T, e *redislock.Engine, c *crowd)
}

var deeds = []deed{
	{"release that hands over to all", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		drivertest.Release(t, e, c.head)
		c.want(t, "holders", c.n)
	}},
	{"release with dead places", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		heir := c.heir(t)
		drivertest.Release(t, e, c.head)
		c.want(t, "queue", 0)
		drivertest.Granted(t, e, heir)
	}},
	{"acquire with dead places", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		c.later(t, "waiters", -2*time.Hour)
		c.do(t, "DEL", c.name)
		drivertest.Granted(t, e, drivertest.Request(c.name, time.Minute))
	}},
	{"refresh with dead places", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		heir := c.heir(t)
		if way := refreshed(t, e, heir)[0]; way.Err != nil || way.Place != 1 {
			t.Errorf("refresh: %+v, want place 1", way)
		}
	}},
	{"refresh of 128", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		for i, r := range refreshed(t, e, c.reqs[:min(c.n, driver.MaxBatch)]...) {
			if r.Err != nil || r.Place < 1 {
				t.Errorf("refresh %d: %+v", i, r)
			}
		}
	}},
	{"refresh that hands over to all", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		c.do(t, "DEL", c.name)
		if r := refreshed(t, e, c.reqs[c.n-1])[0]; r.Err != nil || r.Outcome != driver.Granted {
			t.Errorf("refresh: %+v, want a grant", r)
		}
		c.want(t, "holders", c.n)
	}},
	{"denial", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		drivertest.Held(t, e, drivertest.Request(c.name, time.Minute))
	}},
	{"downgrade", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		if err := e.Downgrade(t.Context(), driver.DowngradeRequest{Name: c.name, LeaseID: c.head.LeaseID}); err != nil {
			t.Error(err)
		}
		c.want(t, "holders", c.n+1)
	}},
	{"complete", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		if err := e.Complete(t.Context(), driver.CompleteRequest{Name: c.name, LeaseID: c.head.LeaseID, Retention: time.Minute}); err != nil {
			t.Error(err)
		}
		c.want(t, "queue", 0)
		c.want(t, "holders", c.n/2)
	}},
	{"complete while others share", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		c.do(t, "DEL", c.name, key("queue", c.name), key("waiters", c.name), key("detail", c.name))
		holder := drivertest.Request(c.name, time.Hour)
		holder.Mode = driver.Shared
		drivertest.Granted(t, e, holder)
		other := drivertest.Request(c.name, time.Hour)
		other.Mode = driver.Shared
		drivertest.Granted(t, e, other)
		first := drivertest.Request(c.name, time.Hour)
		first.Queue, first.WaiterTTL = true, time.Hour
		drivertest.Held(t, e, first)
		for i := range 3 {
			req := c.reqs[i]
			req.LeaseID = driver.NewLeaseID()
			drivertest.Held(t, e, req)
		}
		if err := e.Complete(t.Context(), driver.CompleteRequest{Name: c.name, LeaseID: holder.LeaseID, Retention: time.Minute}); err != nil {
			t.Error(err)
		}
		c.want(t, "queue", 3)
	}},
	{"clock that went back, places", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		c.rewound(t, "waiters")
		drivertest.Held(t, e, drivertest.Request(c.name, time.Minute))
		c.bounded(t, "waiters")
	}},
	{"lost queue", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		c.do(t, "DEL", key("queue", c.name), c.name)
		drivertest.Granted(t, e, drivertest.Request(c.name, time.Minute))
	}},
	{"inspect of a queue", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		lock, err := e.Inspect(t.Context(), c.name)
		if err != nil || lock.QueueLength != c.n || len(lock.Queue) < min(c.n, driver.ShownPlaces) {
			t.Errorf("inspect: %d places, length %d, %v", len(lock.Queue), lock.QueueLength, err)
		}
	}},
	{"inspect of a queue with dead places", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		heir := c.heir(t)
		lock, err := e.Inspect(t.Context(), c.name)
		if err != nil || lock.QueueLength != 1 || len(lock.Queue) != 1 || lock.Queue[0].LeaseID != heir.LeaseID {
			t.Errorf("inspect: %+v, length %d, %v", lock.Queue, lock.QueueLength, err)
		}
	}},
	{"inspect of holders", false, func(t *testing.T, e *redislock.Engine, c *crowd) {
		lock, err := e.Inspect(t.Context(), c.name)
		if err != nil || len(lock.Holders) != c.n {
			t.Errorf("inspect: %d holders, %v", len(lock.Holders), err)
		}
	}},
	{"acquire beside holders", false, func(t *testing.T, e *redislock.Engine, c *crowd) {
		req := drivertest.Request(c.name, time.Hour)
		req.Mode = driver.Shared
		drivertest.Granted(t, e, req)
		drivertest.Release(t, e, req)
		c.want(t, "holders", c.n)
	}},
	{"acquire after holders", false, func(t *testing.T, e *redislock.Engine, c *crowd) {
		c.later(t, "holders", -2*time.Hour)
		drivertest.Granted(t, e, drivertest.Request(c.name, time.Minute))
	}},
	{"acquire beside the last of the holders", false, func(t *testing.T, e *redislock.Engine, c *crowd) {
		c.later(t, "holders", -2*time.Hour)
		last := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
		c.do(t, "ZADD", key("holders", c.name), last, string(c.reqs[0].LeaseID))
		drivertest.Held(t, e, drivertest.Request(c.name, time.Minute))
		c.want(t, "holders", 1)
	}},
	{"acquire of a lock that was deleted", false, func(t *testing.T, e *redislock.Engine, c *crowd) {
		c.do(t, "DEL", c.name)
		drivertest.Granted(t, e, drivertest.Request(c.name, time.Minute))
	}},
	{"lost holders", false, func(t *testing.T, e *redislock.Engine, c *crowd) {
		c.do(t, "DEL", key("holders", c.name))
		drivertest.Held(t, e, drivertest.Request(c.name, time.Minute))
	}},
	{"extend of 128", false, func(t *testing.T, e *redislock.Engine, c *crowd) {
		extended(t, e, c.reqs[:min(c.n, driver.MaxBatch)])
	}},
	{"clock that went back, leases", false, func(t *testing.T, e *redislock.Engine, c *crowd) {
		c.rewound(t, "holders")
		extended(t, e, c.reqs[:min(c.n, driver.MaxBatch)])
		c.bounded(t, "holders")
	}},
	{"acquire of 32 names", false, func(t *testing.T, e *redislock.Engine, c *crowd) {
		var reqs []driver.AcquireRequest
		for i := range 32 {
			req := drivertest.Request(fmt.Sprint(c.name, "-", i), time.Minute)
			if i == 0 {
				req.Name, req.Mode = c.name, driver.Shared
			}
			reqs = append(reqs, req)
		}
		if reply, err := e.AcquireAll(t.Context(), reqs); err != nil || reply.Outcome != driver.Granted {
			t.Errorf("acquire all: %+v, %v", reply, err)
		}
		for _, req := range reqs {
			drivertest.Release(t, e, req)
		}
	}},
}

// want fails t unless a sorted set has n members.
func (c *crowd) want(t *testing.T, kind string, n int) {
	t.Helper()
	if got := c.count(t, kind); got != n {
		t.Errorf("%s: %d, want %d", kind, got, n)
	}
}

// heir waits behind the crowd, all of whom have died.
func (c *crowd) heir(t *testing.T) driver.AcquireRequest {
	t.Helper()
	heir := drivertest.Request(c.name, time.Hour)
	heir.Queue, heir.WaiterTTL = true, time.Hour
	drivertest.Held(t, c.engine, heir)
	c.later(t, "waiters", -2*time.Hour)
	ends := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	c.do(t, "ZADD", key("waiters", c.name), ends, string(heir.LeaseID))
	return heir
}

// rewound makes the ends those of a clock that was an hour ahead.
func (c *crowd) rewound(t *testing.T, kind string) {
	t.Helper()
	c.later(t, kind, time.Hour)
	c.do(t, "HSET", key("detail", c.name), "seen", strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10))
}

// bounded fails t if anything ends later than an hour from now.
func (c *crowd) bounded(t *testing.T, kind string) {
	t.Helper()
	late, err := c.do(t, "ZCOUNT", key(kind, c.name), strconv.FormatInt(time.Now().Add(time.Hour+time.Second).UnixMilli(), 10), "+inf").AsInt64()
	if err != nil || late > 0 {
		t.Errorf("%d of %s last too long, %v", late, kind, err)
	}
}

func refreshed(t *testing.T, e *redislock.Engine, reqs ...driver.AcquireRequest) []driver.RefreshReply {
	t.Helper()
	var batch []driver.RefreshRequest
	for _, req := range reqs {
		batch = append(batch, driver.RefreshRequest{Name: req.Name, LeaseID: req.LeaseID, WaiterTTL: 2 * time.Hour})
	}
	return e.Refresh(t.Context(), batch)
}

func extended(t *testing.T, e *redislock.Engine, reqs []driver.AcquireRequest) {
	t.Helper()
	var batch []driver.ExtendRequest
	for _, req := range reqs {
		batch = append(batch, driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: time.Hour})
	}
	for i, err := range e.Extend(t.Context(), batch) {
		if err != nil {
			t.Errorf("extend %d: %v", i, err)
		}
	}
}

// TestCallsAreBounded: however many wait for a name or hold it, no call runs
// more than 2,000 commands on the server. In a soak, nor does it take 2 ms.
func TestCallsAreBounded(t *testing.T) {
	sizes, rounds := []int{10_000}, 1
	if soak.Long() {
		sizes, rounds = []int{100, 1000, 10_000}, soak.Count(3, 20)
	}
	s := newStore(t)
	number := 0
	for _, n := range sizes {
		crowds := map[bool]*crowd{true: newCrowd(t, s, n, true), false: newCrowd(t, s, n, false)}
		for _, d := range deeds {
			var most int
			var times [][]time.Duration // of each call, in each round
			for range rounds {
				number++
				c := crowds[d.wait].copyTo(t, fmt.Sprint("copy-", number))
				e, w := s.watch(t)
				if ok := t.Run(strings.ReplaceAll(fmt.Sprint(d.what, " ", n), " ", "-"), func(t *testing.T) { d.do(t, e, c) }); !ok {
					return
				}
				most = max(most, w.most)
				for i, took := range w.calls {
					if i == len(times) {
						times = append(times, nil)
					}
					times[i] = append(times[i], took)
				}
				for _, kind := range []string{"fence", "holders", "queue", "waiters", "detail", "record"} {
					s.do(t, "UNLINK", c.name, key(kind, c.name))
				}
			}
			var median time.Duration // of all rounds, of the longest call
			for _, call := range times {
				slices.Sort(call)
				median = max(median, call[len(call)/2])
			}
			report.Row(t, fmt.Sprintf("%s, %d", d.what, n), "no call runs 2,000 commands or blocks the server for 2 ms",
				"%d calls, the longest %d commands and %s (median of %d rounds)", len(times), most, median, rounds)
			if most > mostCommands {
				t.Errorf("%s, %d: %d commands in one call, want at most %d", d.what, n, most, mostCommands)
			}
			if soak.Long() && median > longestCall {
				t.Errorf("%s, %d: a call took %s, want at most %s", d.what, n, median, longestCall)
			}
		}
		s.do(t, "FLUSHALL")
	}
}

// TestHalfDoneCallIsFinished: a request that needs several calls lets nobody in
// between them, who is not in the queue; and if its sender dies after the
// first, whoever comes next goes on.
func TestHalfDoneCallIsFinished(t *testing.T) {
	const n = 1000
	s := newStore(t)
	base := newCrowd(t, s, n, true)
	number := 0
	fresh := func() *crowd {
		number++
		return base.copyTo(t, fmt.Sprint("copy-", number))
	}
	// barge tries to take the lock as a client does that knows of no queue.
	barge := func(c *crowd) func(int) {
		return func(call int) {
			if got, _ := c.plain.Do(t.Context(), c.plain.B().Set().Key(c.name).Value("x").Nx().PxMilliseconds(60000).Build()).ToString(); got == "OK" {
				t.Errorf("after call %d the lock was free", call)
			}
		}
	}
	release := driver.ReleaseRequest{}

	c := fresh()
	e, w := s.watch(t)
	w.after = barge(c)
	drivertest.Release(t, e, c.head) // to all
	c.want(t, "holders", n)

	c = fresh()
	heir := c.heir(t)
	e, w = s.watch(t)
	w.after = barge(c)
	drivertest.Release(t, e, c.head) // behind dead places
	drivertest.Granted(t, e, heir)
	if len(w.calls) < 4 {
		t.Fatalf("%d calls: nothing was done in parts", len(w.calls))
	}

	// The requests that come next after the sender of a release to all has died.
	next := map[string]func(c *crowd){
		"the same again": func(c *crowd) {
			if err := s.engine.Release(t.Context(), release); err != driver.ErrLost {
				t.Errorf("a repeat of the release: %v, want ErrLost", err)
			}
		},
		"one who waits": func(c *crowd) {
			if r := refreshed(t, s.engine, c.reqs[n-1])[0]; r.Err != nil || r.Outcome != driver.Granted {
				t.Errorf("refresh: %+v, want a grant", r)
			}
		},
		"a newcomer": func(c *crowd) {
			req := drivertest.Request(c.name, time.Minute)
			req.Mode = driver.Shared
			token := drivertest.Granted(t, s.engine, req)
			for _, r := range refreshed(t, s.engine, c.reqs[n-1]) {
				if r.Err != nil || r.Token >= token {
					t.Errorf("the last of the queue: %+v, and a newcomer had the token %d", r, token)
				}
			}
			drivertest.Release(t, s.engine, req)
		},
		"a newcomer who cannot share": func(c *crowd) { drivertest.Held(t, s.engine, drivertest.Request(c.name, time.Minute)) },
	}
	for who, comes := range next {
		c := fresh()
		release = driver.ReleaseRequest{Name: c.name, LeaseID: c.head.LeaseID}
		e, w := s.watch(t)
		drivertest.Held(t, e, drivertest.Request(c.name, time.Minute)) // from here on it knows that the name is wanted
		w.limit = len(w.calls) + 1
		err := e.Release(t.Context(), release)
		if err == nil || err == driver.ErrLost {
			t.Errorf("half of a release: %v, want an unknown outcome", err)
		}
		if got := c.count(t, "holders"); got == 0 || got == n {
			t.Fatalf("%d of %d were granted the lock by half of a release", got, n)
		}
		if comes(c); c.count(t, "holders") != n {
			t.Errorf("%s came next, and %d of %d have the lock", who, c.count(t, "holders"), n)
		}
	}

	// The sender of a complete dies: a repeat gives up all places that asked
	// for Once, those behind others included.
	c = fresh()
	e, w = s.watch(t)
	w.limit = 1
	complete := driver.CompleteRequest{Name: c.name, LeaseID: c.head.LeaseID, Retention: time.Minute}
	if err := e.Complete(t.Context(), complete); err == nil || err == driver.ErrLost {
		t.Errorf("half of a complete: %v, want an unknown outcome", err)
	}
	if err := s.engine.Complete(t.Context(), complete); err != nil {
		t.Errorf("the same again: %v", err)
	}
	c.want(t, "queue", 0)
	c.want(t, "holders", n/2)

	// The sender of a downgrade dies.
	c = fresh()
	e, w = s.watch(t)
	w.limit = 1
	downgrade := driver.DowngradeRequest{Name: c.name, LeaseID: c.head.LeaseID}
	if err := e.Downgrade(t.Context(), downgrade); err == nil || err == driver.ErrLost {
		t.Errorf("half of a downgrade: %v, want an unknown outcome", err)
	}
	if err := s.engine.Downgrade(t.Context(), downgrade); err != nil {
		t.Errorf("the same again: %v", err)
	}
	c.want(t, "holders", n+1)
}
