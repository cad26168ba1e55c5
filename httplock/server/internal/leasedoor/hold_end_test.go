package leasedoor_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestHoldReleased checks that a holder can release by a request to this server or another.
func TestHoldReleased(t *testing.T) {
	for _, query := range []string{"", "&renew=client"} {
		synctest.Test(t, func(t *testing.T) {
			engine := mem.New(nil)
			a, b := openFar(t, engine), openFar(t, engine)
			c := a.hold(query, key, asked(0))
			a.do(http.StatusNoContent, "POST", "/v1/leases/release", "", refOf(c.last("acquired")), nil)
			c.ended("released")
			c = a.hold(query, rival, asked(0))
			b.do(http.StatusNoContent, "POST", "/v1/leases/release", "", refOf(c.last("acquired")), nil)
			time.Sleep(16 * second)
			if l := c.ended("lost"); l.Code != "lost" {
				t.Errorf("%+v", l)
			}
		})
	}
}

// TestHoldReleasedByAnotherName checks that a release with the stream's lease ID and another name
// does not end the stream. Its caller need not have a right to the stream's name.
func TestHoldReleasedByAnotherName(t *testing.T) {
	for _, query := range []string{"", "&renew=client"} {
		synctest.Test(t, func(t *testing.T) {
			s := openFar(t, mem.New(nil))
			c := s.hold(query, key, asked(0))
			ref := refOf(c.last("acquired"))
			ref.Name = "other"
			s.refused(http.StatusGone, "lost", "POST", "/v1/leases/release", "", ref)
			synctest.Wait()
			if c.events("released") > 0 {
				t.Error("the stream has ended")
			}
			c.close()
		})
	}
}

func refOf(l heard) wire.LeaseRefs {
	return wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: l.Name, LeaseID: l.LeaseID}}
}

// TestHoldMinHold checks that the minimum hold time outlasts the end of a connection. It counts
// from the grant, at whichever server the lease continues.
func TestHoldMinHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := openNear(t, engine), openNear(t, engine)
		req := asked(0)
		req.MinHoldMS = 60_000
		a.hold("", key, req)
		time.Sleep(20 * second)
		a.server.Drain()
		c := b.hold("", key, req)
		c.last("acquired")
		time.Sleep(20 * second)
		c.close()
		if free := freeAfter(t, engine, name, 10*time.Millisecond); free < 20*second || free > 20*second+10*time.Millisecond {
			t.Errorf("free after %s, want 20 s", free)
		}
	})
}

// TestHoldBrokenAtALook checks that a lease that is broken while the stream checks it is reported
// as broken, not as expired.
func TestHoldBrokenAtALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		for round := range 100 {
			c := openFar(t, engine).hold("", key+strconv.Itoa(round), asked(0))
			begun := c.last("acquired")
			time.Sleep(time.Until(begun.at.Add(3 * time.Duration(begun.PingMS) * time.Millisecond)))
			if _, err := engine.Break(context.Background(), driver.BreakRequest{Name: name, Token: begun.FencingToken, Author: "ops", Reason: "maintenance"}); err != nil {
				t.Fatal(err)
			}
			if l := c.ended("lost"); l.Cause != "broken" {
				t.Fatalf("round %d: the cause is %q: %s", round, l.Cause, l.Detail)
			}
			c.close()
			time.Sleep(time.Minute)
		}
	})
}

// TestHoldBroken checks that a stream reports a broken lease at once.
func TestHoldBroken(t *testing.T) {
	for _, query := range []string{"", "&renew=client"} {
		synctest.Test(t, func(t *testing.T) {
			engine := mem.New(nil)
			c := openFar(t, engine).hold(query, key, asked(0))
			token := c.last("acquired").FencingToken
			if _, err := engine.Break(context.Background(), driver.BreakRequest{Name: name, Token: token, Author: "ops", Reason: "maintenance"}); err != nil {
				t.Fatal(err)
			}
			if l := c.ended("lost"); l.Code != "broken" || l.Cause != "broken" {
				t.Errorf("%+v", l)
			}
		})
	}
}

// TestHoldRenewedByClient checks that a stream whose client renews ends when the lease ends, and
// that its pings do not contain the remaining time.
func TestHoldRenewedByClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		c := openFar(t, engine).hold("&renew=client", key, asked(0))
		first := c.last("acquired")
		renew := driver.ExtendRequest{Name: name, LeaseID: lockinfo.LeaseID(first.LeaseID), TTL: 30 * second}
		for range 20 {
			time.Sleep(9 * second)
			if err := engine.Extend(t.Context(), []driver.ExtendRequest{renew})[0]; err != nil {
				t.Fatal(err)
			}
		}
		if p := c.last("ping"); p.ExpiresInMS != nil {
			t.Errorf("%+v", p)
		}
		time.Sleep(41 * second)
		if l := c.ended("lost"); l.at.Sub(first.at) > 3*time.Minute+40*second {
			t.Errorf("%+v, %s after acquired", l, l.at.Sub(first.at))
		}
	})
}
