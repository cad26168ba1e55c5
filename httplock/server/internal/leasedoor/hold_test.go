package leasedoor_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	name   = "orders/42"
	rival  = "key-of-the-rival-0123"
	second = time.Second
)

// asked returns a request for name with a TTL of 30 s.
func asked(wait time.Duration) wire.LeaseRequest {
	return wire.LeaseRequest{Name: name, TTLMS: 30_000, WaitMS: wait.Milliseconds()}
}

// named returns such a request for another name.
func named(name string) wire.LeaseRequest {
	req := asked(0)
	req.Name = name
	return req
}

// TestHoldPings checks that a stream reports what was acquired, and then sends a ping every sixth
// of the TTL.
func TestHoldPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := openFar(t, engine).hold("", key, asked(0))
		first := c.last("acquired")
		if first.Token == nil || first.LeaseID == "" || first.Name != name || first.Mode != "exclusive" || first.TTLMS != 30_000 ||
			first.PingMS != 5000 || first.QuietMS != 10_000 || first.OnClose != "free_later" || first.Renew != "server" || first.ExpiresInMS == nil {
			t.Errorf("acquired: %+v", first)
		}
		if got := c.header.Get("Content-Type"); got != "application/x-ndjson" {
			t.Errorf("Content-Type: %s", got)
		}
		time.Sleep(10 * time.Minute)
		all := c.lines()
		if len(all) != 1+120 {
			t.Errorf("%d lines in 10 minutes, want one every 5 s", len(all))
		}
		for i, l := range all[1:] {
			if l.Event != "ping" || l.AtMS != int64(i+1)*5000 || l.ExpiresInMS == nil || *l.ExpiresInMS < 15_000 {
				t.Errorf("line %d: %+v", i+1, l)
			}
		}
		if held := look(t, engine, name).Holders; len(held) != 1 || held[0].Token != first.FencingToken || string(held[0].LeaseID) != first.LeaseID {
			t.Errorf("the store has %+v", held)
		}
	})
}

// TestHoldClosed checks when a lock is free after a close. If the connection is the client's own,
// it is free at once, else when the client has stopped by its own rule, or, if the client renews,
// when the lease expires. INVARIANT I1: no address proves that a connection is the client's own.
func TestHoldClosed(t *testing.T) {
	comesFrom := func(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }
	passedOn := func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.7") }
	for what, c := range map[string]struct {
		near  bool
		query string
		with  func(*http.Request)
		close string
		free  time.Duration
	}{
		"by a socket":                           {true, "", nil, "release", 0},
		"by a socket, and not direct":           {true, "&direct=0", nil, "free_later", 12 * second},
		"by a socket, from a proxy":             {true, "", passedOn, "free_later", 12 * second},
		"by a socket, renewed by the client":    {true, "&renew=client", nil, "release", 0},
		"from this host":                        {false, "", comesFrom("127.0.0.1:4711"), "free_later", 12 * second},
		"from this host, by IPv6":               {false, "", comesFrom("[::1]:4711"), "free_later", 12 * second},
		"from this host, and direct":            {false, "&direct=1", comesFrom("127.0.0.1:4711"), "release", 0},
		"from the inbound side of a mesh":       {false, "", comesFrom("127.0.0.6:4711"), "free_later", 12 * second},
		"from this host, from a proxy":          {false, "", func(r *http.Request) { comesFrom("127.0.0.1:1")(r); passedOn(r) }, "free_later", 12 * second},
		"from this host, renewed by the client": {false, "&renew=client", comesFrom("127.0.0.1:4711"), "run_out", 27 * second},
		"elsewhere":                             {false, "", nil, "free_later", 12 * second},
		"elsewhere, and direct":                 {false, "&direct=1", nil, "release", 0},
		"elsewhere, renewed by the client":      {false, "&renew=client", nil, "run_out", 27 * second},
		"elsewhere, renewed by the server":      {false, "&renew=server", nil, "free_later", 12 * second},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := mem.New(nil)
				s := openFar(t, engine)
				if c.near {
					s = openNear(t, engine)
				}
				var with []func(*http.Request)
				if c.with != nil {
					with = append(with, c.with)
				}
				stream := s.hold(c.query, key, asked(0), with...)
				if got := stream.last("acquired").OnClose; got != c.close {
					t.Errorf("on_close is %q, want %q", got, c.close)
				}
				time.Sleep(3 * second)
				stream.close()
				const step = 10 * time.Millisecond
				if free := freeAfter(t, engine, name, step); free < c.free || free > c.free+step {
					t.Errorf("free after %s, want %s", free, c.free)
				}
			})
		})
	}
}

// TestHoldSilence checks that silence does not release the lease. After two thirds of the TTL
// without an acknowledgement the server stops renewing, and the lease expires.
func TestHoldSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := openNear(t, engine).hold("", key, asked(0))
		time.Sleep(7 * second)
		c.listen(false)
		began := time.Now()
		time.Sleep(20 * second)
		c.last("ping")
		time.Sleep(6 * second)
		if end := c.ended("lost"); end.Cause != "silent" || end.at.Sub(began) < 20*second {
			t.Errorf("%+v after %s", end, end.at.Sub(began))
		}
		held := look(t, engine, name).Holders
		if len(held) == 0 {
			t.Fatal("it is released")
		}
		left := held[0].ExpiresIn
		if free := freeAfter(t, engine, name, 10*time.Millisecond); free < left || left < 20*second {
			t.Errorf("free after %s, and the lease had %s left", free, left)
		}
	})
}

// TestHoldShortSilence checks that a shorter silence has no effect.
func TestHoldShortSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openFar(t, mem.New(nil)).hold("", key, asked(0))
		for range 10 {
			c.listen(false)
			time.Sleep(19 * second)
			c.listen(true)
			time.Sleep(5 * second)
			c.last("ping")
		}
	})
}

// TestHoldFullConnection checks that a full connection counts as silence, not as a close.
func TestHoldFullConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := openNear(t, engine).hold("", key, asked(0))
		c.mu.Lock()
		c.full = true
		c.mu.Unlock()
		time.Sleep(27 * second)
		<-c.done
		if left := look(t, engine, name).Holders[0].ExpiresIn; left < 20*second {
			t.Errorf("%s left, as if the stream had ended the lease", left)
		}
	})
}

// TestHoldQueued checks that a waiter receives its place, and then the lock.
func TestHoldQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := openNear(t, engine)
		holder := s.hold("", key, asked(0))
		first := s.hold("", rival, asked(time.Hour))
		next := s.hold("", "key-of-the-next-01234", asked(time.Hour))
		if q := next.last("queued"); q.Place != 2 || q.QueueLength != 2 || len(q.Holders) != 1 || q.QuietMS != 10_000 {
			t.Errorf("%+v", q)
		}
		time.Sleep(time.Minute)
		if got := first.events("ping"); got < 11 {
			t.Errorf("%d pings in a minute of waiting", got)
		}
		holder.close()
		first.last("acquired")
		time.Sleep(6 * second)
		if q := next.lines(); q[len(q)-1].Event != "ping" || q[len(q)-2].Place != 1 && q[len(q)-3].Place != 1 {
			t.Errorf("the second was not told that it is first: %+v", q[len(q)-3:])
		}
		next.close() // the waiter gives up its place
		if n := look(t, engine, name).QueueLength; n != 0 {
			t.Errorf("%d are queued after the waiter has hung up", n)
		}
	})
}

// TestHoldQueuedElsewhere checks that a client that may be alive keeps its place for a while.
func TestHoldQueuedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := openFar(t, engine), openFar(t, engine)
		holder := a.hold("&direct=1", key, asked(0))
		waiter, other := a.hold("", rival, asked(time.Hour)), a.hold("", "key-of-the-next-01234", asked(time.Hour))
		waiter.close()
		if q := b.hold("", rival, asked(time.Hour)).last("queued"); q.Place != 1 {
			t.Errorf("%+v, want the same place", q)
		}
		holder.close()
		other.last("queued")
	})
}

// TestHoldRefusedLeavesNoPlace checks INVARIANT I7: a refused client has no place any more, and the
// next waiter does not wait for it.
func TestHoldRefusedLeavesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := openFar(t, engine)
		holder := s.hold("&direct=1", key, asked(0))
		const impatient = 5
		async := func(r *http.Request) { r.Header.Set("Prefer", "respond-async") } // has no effect on a stream
		for i := range impatient {
			s.hold("", rival+strconv.Itoa(i), asked(second), async)
		}
		patient := s.hold("", "key-of-the-next-01234", asked(time.Hour))
		time.Sleep(second + time.Millisecond)
		if n := look(t, engine, name).QueueLength; n != 1 {
			t.Errorf("%d are queued, want the one that goes on waiting", n)
		}
		holder.close()
		patient.last("acquired")
	})
}

// TestHoldRefusedWhereItIsNot checks that the end of a wait at one server ends no lease of the same
// client at another server. The wait gives up a place, which the other server notices.
func TestHoldRefusedWhereItIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := openFar(t, engine), openFar(t, engine)
		holder := a.hold("&direct=1", key, asked(0))
		old := a.hold("", rival, asked(8*second)) // the client no longer reads this stream
		time.Sleep(5 * second)
		c := b.hold("", rival, asked(time.Hour))
		time.Sleep(3*second + time.Millisecond)
		old.ended("refused")
		holder.close()
		time.Sleep(time.Minute)
		c.last("ping")
		if held := look(t, engine, name).Holders; len(held) != 1 || c.events("acquired") != 1 {
			t.Errorf("the store has %+v", held)
		}
	})
}

// TestHoldHandedOverAtTheEnd checks that a client gets a lock just after the end of its wait.
func TestHoldHandedOverAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		holder := openFar(t, engine).hold("&direct=1", key, asked(0))
		first, end := holder.last("acquired").LeaseID, time.Now().Add(3*second)
		late := &hook.Engine{Forward: driver.Forward{Engine: engine}, Each: func(_ context.Context, r hook.Request, send func() error) error {
			if r.Method == "Refresh" && !time.Now().Before(end) {
				holder.cancel()
				for look(t, engine, name).Holders[0].LeaseID == lockinfo.LeaseID(first) {
					time.Sleep(time.Millisecond)
				}
			}
			return send()
		}}
		c := openFar(t, late).hold("", rival, asked(3*second))
		time.Sleep(3*second + 100*time.Millisecond)
		c.last("acquired")
		time.Sleep(time.Minute)
		c.last("ping")
	})
}

// TestHoldDirectByProxy checks that direct=1 is refused if the request came through a proxy.
func TestHoldDirectByProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := openFar(t, engine)
		for _, header := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-IP"} {
			c := s.hold("&direct=1", key, asked(0), func(r *http.Request) { r.Header.Set(header, "192.0.2.7") })
			if all := c.lines(); c.status != http.StatusBadRequest || !strings.Contains(all[0].Detail, "leave direct out") {
				t.Errorf("%s: %d %+v", header, c.status, all)
			}
			c.close()
		}
		if held := look(t, engine, name).Holders; len(held) != 0 {
			t.Errorf("the store has %+v", held)
		}
	})
}

// TestHoldRefused checks that a stream reports the end of its wait. A request without a wait is
// refused without a stream.
func TestHoldRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openNear(t, mem.New(nil))
		s.hold("", key, asked(0))
		c := s.hold("", rival, asked(8*second))
		time.Sleep(9 * second)
		if r := c.ended("refused"); r.Code != "lock-held" || len(r.Holders) != 1 || r.QueueLength != 1 {
			t.Errorf("%+v", r)
		}
		s.refused(409, "lock-held", "POST", "/v1/leases?hold=1", "key-of-the-next-01234", asked(0))
		for _, query := range []string{"hold=2", "hold=1&direct=yes", "hold=1&renew=never", "hold=1&other=1", "hold=1&hold=1", "hold=1&direct=%zz"} {
			s.refused(400, "invalid", "POST", "/v1/leases?"+query, rival, asked(0))
		}
		short := asked(0)
		short.TTLMS = 999
		s.refused(400, "invalid", "POST", "/v1/leases?hold=1", rival, short)
	})
}
