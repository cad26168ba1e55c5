package leasedoor_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// A store is one that the requests of one server may not reach.
type store struct {
	hook.Engine
	mu  sync.Mutex
	cut bool
}

func behind(engine driver.Engine) *store {
	s := &store{}
	s.Forward = driver.Forward{Engine: engine}
	s.Each = func(ctx context.Context, _ hook.Request, send func() error) error {
		s.mu.Lock()
		cut := s.cut
		s.mu.Unlock()
		if cut {
			<-ctx.Done()
			return ctx.Err()
		}
		return send()
	}
	return s
}

func (s *store) set(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
}

// The last line that a client may hear, whatever becomes of it then, ends before the lease
// does; the loss is said a tenth of the TTL before that.
func TestHoldStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		away := behind(engine)
		c := openFar(t, away).hold("", key, asked(0))
		time.Sleep(7 * second)
		away.set(true)
		ends := time.Now().Add(look(t, engine, name).Holders[0].ExpiresIn)
		time.Sleep(40 * second)
		lost := c.ended("lost")
		if left := ends.Sub(lost.at); lost.Cause != "deadline" || left < 6*second || left > 7*second {
			t.Errorf("%+v, %s before the lease ends, want a tenth of 30 s and the holder's margin", lost, left)
		}
		all := c.lines()
		ping := all[len(all)-2]
		if left := ends.Sub(ping.at); ping.Event != "ping" || left < 15*second || left > 16*second {
			t.Errorf("the last ping came %s before the lease ends, want what it promises, 12 s, and the holder's margin", left)
		}
	})
}

// A renewal that succeeds at last is heard of in time.
func TestHoldStoreBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		for away := 14 * second; away < 20*second; away += 500 * time.Millisecond {
			store := behind(engine)
			s := openFar(t, store)
			c := s.hold("&direct=1", key+away.String(), asked(0))
			time.Sleep(5*second + 100*time.Millisecond)
			store.set(true)
			time.Sleep(away)
			store.set(false)
			time.Sleep(20 * second)
			last := c.last("ping")
			if all := c.lines(); len(all) < 5 || time.Since(last.at) > 6*second {
				t.Errorf("away for %s: %d lines, the last %s ago", away, len(all), time.Since(last.at))
			}
			for i, l := range c.lines()[1:] {
				if pause := l.at.Sub(c.lines()[i].at); pause > 10*second {
					t.Errorf("away for %s: %s without a line, and the lock was held", away, pause)
				}
			}
			c.close()
		}
	})
}

// Whatever becomes of the store and of the client, no line promises more than the lease
// has left at that time.
func TestHoldPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		for round := range 40 {
			away := behind(engine)
			ttl := time.Duration(1000+rand.IntN(60_000)) * time.Millisecond
			req := asked(0)
			req.TTLMS = ttl.Milliseconds()
			c := openFar(t, away).hold("", key+strconv.Itoa(round), req)
			quiet := time.Duration(c.last("acquired").QuietMS) * time.Millisecond
			promise := quiet + quiet/5
			for seen, steps := 0, 0; steps < 500; steps++ {
				if rand.IntN(100) == 0 {
					away.set(rand.IntN(2) == 0)
				}
				if rand.IntN(100) == 0 {
					c.listen(rand.IntN(2) == 0)
				}
				time.Sleep(rand.N(ttl / 50))
				holders := look(t, engine, name).Holders
				for _, l := range c.lines()[seen:] {
					if seen++; l.Event != "acquired" && l.Event != "ping" {
						continue
					}
					if len(holders) == 0 || holders[0].ExpiresIn < promise-time.Since(l.at)-time.Millisecond {
						t.Errorf("TTL %s: the promise of %s at %s is not kept: %+v", ttl, promise, l.at, holders)
					}
				}
			}
			away.set(false)
			c.close()
			time.Sleep(2 * ttl)
		}
		time.Sleep(20 * second) // requests that hang have timed out by then
	})
}

// When the server drains the streams move: the same key goes on at another server, with
// the same token, and nothing is released.
func TestHoldDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := openNear(t, engine), openNear(t, engine)
		c, waiter := a.hold("", key, asked(0)), a.hold("", rival, asked(time.Hour))
		client := a.hold("&renew=client", key+"client", named("other"))
		token := c.last("acquired").FencingToken
		time.Sleep(7 * second)
		if err := a.server.Close(t.Context()); err != nil { // at once: no stream may have noticed yet
			t.Fatal(err)
		}
		c.ended("moved")
		waiter.ended("moved")
		client.ended("moved")
		a.refused(503, "draining", "POST", "/v1/leases?hold=1", "key-of-the-next-01234", asked(0))
		c.close()
		client.close()
		if n := len(look(t, engine, "other").Holders); n != 1 {
			t.Errorf("%d have the lock whose client renews", n)
		}
		again := b.hold("", key, asked(0))
		if got := again.last("acquired").FencingToken; got != token {
			t.Errorf("the token is %d after the move, and was %d", got, token)
		}
		if q := b.hold("", rival, asked(time.Hour)).last("queued"); q.Place != 1 {
			t.Errorf("the waiter has place %d after the move", q.Place)
		}
		time.Sleep(time.Minute)
		again.last("ping")
	})
}

// A connection that the server closes itself, at the end of its patience with a client that
// does not read, is not hung up by the client: the lease and the place are left, for the
// client to go on with elsewhere.
func TestHoldCutByDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := openNear(t, engine), openNear(t, engine)
		c, waiter := a.hold("", key, asked(0)), a.hold("", rival, asked(time.Hour))
		token := c.last("acquired").FencingToken
		for _, stream := range []*wireTap{c, waiter} {
			stream.mu.Lock()
			stream.full = true
			stream.mu.Unlock()
		}
		time.Sleep(6 * second) // a line is being written to each
		a.server.Drain()
		c.close()
		waiter.close()
		<-c.done
		<-waiter.done
		if h := look(t, engine, name).Holders; len(h) != 1 || h[0].Token != token {
			t.Errorf("after the end of the server: %+v, want token %d", h, token)
		}
		if q := b.hold("", rival, asked(time.Hour)).last("queued"); q.Place != 1 {
			t.Errorf("the waiter has place %d", q.Place)
		}
		if again := b.hold("", key, asked(0)).last("acquired").FencingToken; again != token {
			t.Errorf("the token is %d elsewhere, and was %d", again, token)
		}
	})
}

// A client that goes on elsewhere keeps its lease, whenever the server that it came from
// notices, and however little was left.
func TestHoldGoesOnElsewhere(t *testing.T) {
	for _, ttl := range []time.Duration{second, 3 * second, 30 * second, 10 * time.Minute} {
		for _, notices := range []time.Duration{0, 1, 10} {
			synctest.Test(t, func(t *testing.T) {
				engine := mem.New(nil)
				a, b := openFar(t, engine), openFar(t, engine)
				req := asked(0)
				req.TTLMS = ttl.Milliseconds()
				old := a.hold("", key, req)
				time.Sleep(ttl * 6 / 5)
				first := old.last("ping").at // it is alive
				if notices == 0 {
					old.close()
					time.Sleep(min(ttl/10, 3*second))
				}
				c := b.hold("", key, req)
				token := c.last("acquired").FencingToken
				if notices > 0 {
					time.Sleep(ttl * notices / 7)
					old.close()
				}
				time.Sleep(3 * ttl)
				c.last("ping")
				if held := look(t, engine, name).Holders; len(held) != 1 || held[0].Token != token {
					t.Errorf("TTL %s: the store has %+v, after %s", ttl, held, time.Since(first))
				}
			})
		}
	}
}

// The same, with more leases at the other server than it renews every few seconds.
func TestHoldGoesOnAmongMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := openFar(t, engine), openFar(t, engine)
		for i := range 4000 {
			req := named("crowd/" + strconv.Itoa(i))
			req.TTLMS = time.Hour.Milliseconds()
			b.hold("", key, req)
		}
		req := asked(0)
		req.TTLMS = time.Hour.Milliseconds()
		old := a.hold("", key, req)
		time.Sleep(7 * second)
		c := b.hold("", key, req)
		time.Sleep(3500 * time.Millisecond) // a renews it after b
		old.close()
		time.Sleep(time.Minute)
		c.last("ping")
		if held := look(t, engine, name).Holders; len(held) != 1 {
			t.Errorf("the store has %+v", held)
		}
	})
}

// Of two streams with one key at the same server the later one has the lease.
func TestHoldTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := openNear(t, engine)
		old := s.hold("", key, asked(0))
		token := old.last("acquired").FencingToken
		time.Sleep(8 * second)
		c := s.hold("", key, asked(0))
		old.ended("moved")
		old.close()
		if got := c.last("acquired").FencingToken; got != token {
			t.Errorf("the token is %d, and was %d", got, token)
		}
		time.Sleep(time.Minute)
		c.last("ping")
		renews := s.hold("&renew=client", key, asked(0))
		c.ended("moved")
		if got := renews.last("acquired").FencingToken; got != token {
			t.Errorf("the token is %d, and was %d", got, token)
		}
		renews.close()
		if held := look(t, engine, name).Holders; len(held) != 0 {
			t.Errorf("the store has %+v", held)
		}
	})
}

// After a close that may not be the client's own, the same key comes back to the same
// server before the lock is freed, or finds it freed.
func TestHoldComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openFar(t, mem.New(nil))
		c := s.hold("", key, asked(0))
		token := c.last("acquired").FencingToken
		for pause := second; pause < 11*second; pause += second {
			time.Sleep(pause)
			c.close()
			time.Sleep(pause)
			if c = s.hold("", key, asked(0)); c.last("acquired").FencingToken != token {
				t.Fatalf("another token, %s after the close", pause)
			}
		}
		time.Sleep(time.Minute)
		c.last("ping")
		c.close()
		time.Sleep(12*second + time.Millisecond)
		s.refused(410, "released", "POST", "/v1/leases?hold=1", key, asked(0))
	})
}
