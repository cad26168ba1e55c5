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

// A store is unreachable for one server while cut is set.
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

// TestHoldStoreAway checks that a stream whose store is unreachable reports the loss in time: a
// tenth of the TTL before the lease expires. What the last ping promises ends before the lease
// does.
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

// TestHoldStoreBack checks that the client hears of a late renewal before its quiet time ends.
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

// TestHoldPromises checks that no line promises more time than the lease has left, whatever happens
// to the store and the client.
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
		time.Sleep(20 * second) // by then hanging requests have timed out
	})
}

// TestHoldDrain checks that the streams of a draining server move: the same key continues at
// another server with the same token, and nothing is released.
func TestHoldDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := openNear(t, engine), openNear(t, engine)
		c, waiter := a.hold("", key, asked(0)), a.hold("", rival, asked(time.Hour))
		client := a.hold("&renew=client", key+"client", named("other"))
		token := c.last("acquired").FencingToken
		time.Sleep(7 * second)
		if err := a.server.Close(t.Context()); err != nil { // at once: streams may not have noticed yet
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

// TestHoldCutByDrain checks that a close by a draining server, whose client does not read, does not
// count as a close by the client. The lease and the place stay for the client at another server.
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
		time.Sleep(6 * second) // a line is being written to each stream
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

// TestHoldGoesOnElsewhere checks that a client that continues at another server keeps its lease,
// whenever the old server notices, and however little time was left.
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
				first := old.last("ping").at // the client is alive
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

// TestHoldGoesOnAmongMany checks the same with more leases at the other server than it renews every
// few seconds.
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
		time.Sleep(3500 * time.Millisecond) // a renews the lease after b
		old.close()
		time.Sleep(time.Minute)
		c.last("ping")
		if held := look(t, engine, name).Holders; len(held) != 1 {
			t.Errorf("the store has %+v", held)
		}
	})
}

// TestHoldTwice checks that the later of two streams with one key at the same server has the lease.
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

// TestHoldComesBack checks that the same key returns to its lease at the same server before the
// lock is freed after a close. Later it finds the lease released.
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
