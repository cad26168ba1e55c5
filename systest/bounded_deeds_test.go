package systest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/redislock"
)

// A deed is an operation whose cost could grow with the number of leases or places.
type deed struct {
	what string
	wait bool // the crowd waits, or else holds
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
		c.later(t, "places", -2*time.Hour)
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
		c.do(t, "DEL", c.name, key("queue", c.name), key("detail", c.name))
		holder := drivertest.Request(c.name, time.Hour)
		holder.Mode = lockinfo.Shared
		drivertest.Granted(t, e, holder)
		other := drivertest.Request(c.name, time.Hour)
		other.Mode = lockinfo.Shared
		drivertest.Granted(t, e, other)
		first := drivertest.Request(c.name, time.Hour)
		first.Queue, first.WaiterTTL = true, time.Hour
		drivertest.Held(t, e, first)
		for i := range 3 {
			req := c.reqs[i]
			req.LeaseID = lockinfo.NewLeaseID()
			drivertest.Held(t, e, req)
		}
		if err := e.Complete(t.Context(), driver.CompleteRequest{Name: c.name, LeaseID: holder.LeaseID, Retention: time.Minute}); err != nil {
			t.Error(err)
		}
		c.want(t, "queue", 3)
	}},
	{"clock that went back, places", true, func(t *testing.T, e *redislock.Engine, c *crowd) {
		c.rewound(t, "places")
		drivertest.Held(t, e, drivertest.Request(c.name, time.Minute))
		c.bounded(t, "places")
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
		req.Mode = lockinfo.Shared
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
				req.Name, req.Mode = c.name, lockinfo.Shared
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
