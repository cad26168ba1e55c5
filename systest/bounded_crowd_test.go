package systest

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/redislock"
)

// A crowd is a name with very many leases or places. Tests copy it.
type crowd struct {
	*store
	name string
	n    int
	reqs []driver.AcquireRequest // of all members
	head driver.AcquireRequest   // the lease for which they wait, if they wait
}

// newCrowd grants n shared leases or, with wait, queues n places behind an exclusive lease. Every
// second place is of a request with Once.
func newCrowd(t *testing.T, s *store, n int, wait bool) *crowd {
	t.Helper()
	c := &crowd{store: s, name: fmt.Sprintf("crowd-%d-%v", n, wait), n: n}
	if wait {
		c.head = drivertest.Request(c.name, time.Hour)
		drivertest.Granted(t, s.engine, c.head)
	}
	for i := range n {
		req := drivertest.Request(c.name, time.Hour)
		req.Mode = lockinfo.Shared
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

// key returns a companion key of a lock, as the doc of package redislock describes it.
func key(kind, name string) string { return "holdfast:{" + name + "}:" + kind + ":" + name }

// copyTo copies the crowd to another name and returns the copy, whose requests have that name.
func (c *crowd) copyTo(t *testing.T, name string) *crowd {
	t.Helper()
	c.do(t, "COPY", c.name, name)
	for _, kind := range []string{"fence", "holders", "queue", "detail"} {
		c.do(t, "COPY", key(kind, c.name), key(kind, name))
	}
	d := &crowd{store: c.store, name: name, n: c.n, reqs: slices.Clone(c.reqs), head: c.head}
	d.head.Name = name
	for i := range d.reqs {
		d.reqs[i].Name = name
	}
	return d
}

// later moves the end of all leases, or of all places except those of but, by a duration.
func (c *crowd) later(t *testing.T, kind string, by time.Duration, but ...driver.AcquireRequest) {
	t.Helper()
	script, but1 := `local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
		for i = 1, #all, 2 do redis.call('ZADD', KEYS[1], all[i + 1] + ARGV[1], all[i]) end`, ""
	if kind == "places" {
		kind, script = "detail", `local all = redis.call('HGETALL', KEYS[1])
			for i = 1, #all, 2 do
				local ends, rest = string.match(all[i + 1], '^(%d+)(.*)$')
				if (all[i] == 'due' or string.sub(all[i], 1, 1) == 'w') and all[i] ~= 'w' .. ARGV[2] then
					redis.call('HSET', KEYS[1], all[i], string.format('%.0f', ends + ARGV[1]) .. rest)
				end
			end`
	}
	for _, req := range but {
		but1 = string(req.LeaseID)
	}
	c.do(t, "EVAL", script, "1", key(kind, c.name), strconv.FormatInt(by.Milliseconds(), 10), but1)
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

// want fails t unless a sorted set has n members.
func (c *crowd) want(t *testing.T, kind string, n int) {
	t.Helper()
	if got := c.count(t, kind); got != n {
		t.Errorf("%s: %d, want %d", kind, got, n)
	}
}

// heir queues a request behind the crowd, and then lets all places of the crowd expire.
func (c *crowd) heir(t *testing.T) driver.AcquireRequest {
	t.Helper()
	heir := drivertest.Request(c.name, time.Hour)
	heir.Queue, heir.WaiterTTL = true, time.Hour
	drivertest.Held(t, c.engine, heir)
	c.later(t, "places", -2*time.Hour, heir)
	return heir
}

// rewound sets all ends as a clock that was an hour ahead would have set them.
func (c *crowd) rewound(t *testing.T, kind string) {
	t.Helper()
	c.later(t, kind, time.Hour)
	c.do(t, "HSET", key("detail", c.name), "seen", strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10))
}

// bounded fails t if a lease or a place ends later than an hour from now.
func (c *crowd) bounded(t *testing.T, kind string) {
	t.Helper()
	late, err := c.do(t, "EVAL", `if ARGV[1] == 'holders' then return redis.call('ZCOUNT', KEYS[1], ARGV[2], '+inf') end
		local late, all = 0, redis.call('HGETALL', KEYS[2])
		for i = 1, #all, 2 do
			if string.sub(all[i], 1, 1) == 'w' and tonumber(string.match(all[i + 1], '^%d+')) > tonumber(ARGV[2]) then late = late + 1 end
		end
		return late`, "2", key("holders", c.name), key("detail", c.name), kind,
		strconv.FormatInt(time.Now().Add(time.Hour+time.Second).UnixMilli(), 10)).AsInt64()
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
