package goredislock

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestSubscription checks that messages arrive as they were sent, with both protocols, that the end
// of the connection is reported, and that messages of the next connection are not taken for its
// continuation.
func TestSubscription(t *testing.T) {
	server := testsvc.Redis(t)
	admin := client(t, server, nil)
	for _, protocol := range []int{2, 3} {
		p := faultproxy.New(t, server.Addr)
		c, err := newConn(through(t, p, func(o *redis.Options) { o.Protocol = protocol }))
		if err != nil {
			t.Fatal(err)
		}
		s := dedicate(t, c)
		messages := make(chan string, 10)
		broken, err := s.Subscribe(t.Context(), func(channel, message string) { messages <- channel + " " + message }, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		for _, channel := range []string{"b", "a"} { // both were confirmed
			if n := do(t, admin, "PUBLISH "+channel, "x \x00\xff"); n != int64(1) {
				t.Errorf("RESP%d: %v listen on %s", protocol, n, channel)
			}
			if m := <-messages; m != channel+" x \x00\xff" {
				t.Errorf("RESP%d: %q", protocol, m)
			}
		}
		p.Drop()
		if err := <-broken; err == nil {
			t.Errorf("RESP%d: no error", protocol)
		}
		s.Close()
		drivertest.Eventually(t, "nobody listens", func() bool { return do(t, admin, "PUBLISH a x") == int64(0) })
		if _, err := s.Subscribe(t.Context(), nil, "a"); err == nil {
			t.Errorf("RESP%d: a session that is closed subscribes", protocol)
		}
	}
}

// TestSilentSubscriptionEnds checks that a connection that does not answer a ping is given up.
func TestSilentSubscriptionEnds(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	p := faultproxy.New(t, server.Addr)
	c, err := newConn(through(t, p, nil))
	if err != nil {
		t.Fatal(err)
	}
	s := newSubscription(c.subscriber(), func(string, string) {})
	defer s.close()
	if err := s.begin(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	const pause = 500 * time.Millisecond
	go s.watch(pause)
	select {
	case err := <-s.broken:
		t.Errorf("given up although the server answers: %v", err)
	case <-time.After(2 * pause):
	}
	p.BlackHole()
	select {
	case <-s.broken:
	case <-time.After(drivertest.Patience):
		t.Error("nobody noticed")
	}
	p.Heal()
}

// TestWaiterHearsAfterABreak checks that the engine subscribes again after its connection broke,
// and that waiters get a notice to look.
func TestWaiterHearsAfterABreak(t *testing.T) {
	server := testsvc.Redis(t)
	p := faultproxy.New(t, server.Addr)
	c := through(t, p, nil)
	e := engine(t, c, nil)
	held := drivertest.Request("a", time.Minute)
	drivertest.Granted(t, e, held)
	waiting, w := drivertest.Queued(t, e, "a", time.Minute)
	told := func(what string) driver.Notice {
		t.Helper()
		select {
		case notice := <-w.C():
			return notice
		case <-time.After(drivertest.Patience):
			t.Fatalf("not told: %s", what)
			return driver.Notice{}
		}
	}
	told("the engine listens")
	p.Drop()
	told("the engine listens again")
	drivertest.Release(t, e, held)
	if n := told("the hand-over"); n.Token == 0 {
		t.Errorf("%+v", n)
	}
	drivertest.Release(t, e, waiting)
}
