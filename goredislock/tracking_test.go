package goredislock

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// renew renews the lease of a request.
func renew(t *testing.T, e *Engine, req driver.AcquireRequest) {
	t.Helper()
	if err := e.Extend(t.Context(), []driver.ExtendRequest{{Name: req.Name, LeaseID: req.LeaseID, TTL: time.Hour}})[0]; err != nil {
		t.Fatal(err)
	}
}

// tracked waits until the server counts n tracked keys.
func tracked(t *testing.T, admin *redis.Client, keys string) {
	t.Helper()
	drivertest.Eventually(t, "the server tells of "+keys+" keys", func() bool {
		return strings.Contains(do(t, admin, "INFO stats").(string), "tracking_total_keys:"+keys+"\r\n")
	})
}

// TestDeletionsAreTold checks that deletions are reported one by one and all at once, even after a
// connection broke, and that our own renewals are not. Nothing is taken from the caller's pool.
func TestDeletionsAreTold(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		server := testsvc.Redis(t) // a server continues to count keys that were tracked
		admin := client(t, server, nil)
		p := faultproxy.New(t, server.Addr)
		c := through(t, p, func(o *redis.Options) { o.Protocol, o.PoolSize, o.ClientName = protocol, 1, "app" })
		e := engine(t, c, &Options{TellDeletions: true})
		var told atomic.Int32
		stop := e.OnLoss(func(driver.Loss) { told.Add(1) })
		a, b := drivertest.Request("a", time.Minute), drivertest.Request("b", time.Minute)
		drivertest.Granted(t, e, a)
		drivertest.Granted(t, e, b)
		for range 10 {
			renew(t, e, a)
			renew(t, e, b)
			tracked(t, admin, "2")
		}
		if n := told.Load(); n != 0 {
			t.Errorf("RESP%d: received %d losses, and there was none", protocol, n)
		}
		do(t, admin, "DEL a")
		drivertest.Eventually(t, "the deletion is reported", func() bool { return told.Load() == 1 })
		do(t, admin, "FLUSHALL")
		drivertest.Eventually(t, "that all is gone is reported", func() bool { return told.Load() == 2 })
		p.Drop()
		last := drivertest.Request("c", time.Minute)
		drivertest.Eventually(t, "it is granted over a new connection", func() bool {
			reply, err := e.Acquire(t.Context(), last)
			return err == nil && reply.Outcome == driver.Granted
		})
		drivertest.Eventually(t, "the server tells again", func() bool {
			renew(t, e, last)
			return strings.Contains(do(t, admin, "INFO stats").(string), "tracking_total_keys:1\r\n")
		})
		do(t, admin, "DEL c")
		drivertest.Eventually(t, "the deletion is reported", func() bool { return told.Load() > 2 })
		stop()
		_ = e.Close()
		_ = c.Close()
		drivertest.Eventually(t, "no connection is left", func() bool { return !strings.Contains(do(t, admin, "CLIENT LIST").(string), "name=app") })
	}
}

// TestTrackingWithoutTheRight checks that the engine works without the right, as it does without
// the option.
func TestTrackingWithoutTheRight(t *testing.T) {
	server := testsvc.Redis(t)
	admin := client(t, server, nil)
	do(t, admin, "ACL SETUSER app reset on >"+secret+" ~* &* +@all -client|tracking")
	e := engine(t, client(t, server, func(o *redis.Options) { o.Username, o.Password = "app", secret }), &Options{TellDeletions: true})
	defer e.OnLoss(func(l driver.Loss) { t.Errorf("received %+v", l) })()
	req := drivertest.Request("a", time.Minute)
	drivertest.Granted(t, e, req)
	for range 3 {
		renew(t, e, req)
	}
	drivertest.Eventually(t, "it was refused", func() bool {
		return strings.Contains(fmt.Sprint(do(t, admin, "ACL LOG")), "client|tracking")
	})
	drivertest.Release(t, e, req)
	c, err := newConn(client(t, server, nil))
	if err != nil {
		t.Fatal(err)
	}
	s := dedicate(t, c)
	s.Close()
	if _, err := s.Track(t.Context(), func([]string) {}); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("a session that is closed tracks: %v", err)
	}
}

// TestOldNewsComesFirst checks that a change of a key is reported before a later read of the key
// returns, although the report comes over another connection, and later.
func TestOldNewsComesFirst(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	admin := client(t, server, nil)
	p := faultproxy.New(t, server.Addr)
	c, err := newConn(through(t, p, nil))
	if err != nil {
		t.Fatal(err)
	}
	s := dedicate(t, c)
	defer s.Close()
	var told atomic.Int32
	if _, err := s.Track(t.Context(), func([]string) { told.Add(1) }); err != nil {
		t.Fatal(err)
	}
	read := func() {
		t.Helper()
		if _, err := s.Do(t.Context(), rediscore.Command{Words: []string{"MGET"}, Keys: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
	}
	// A late answer delays the reports behind it.
	p.OnRequest(func(r faultproxy.Request) faultproxy.Action {
		if r.Command() == "PING" {
			return faultproxy.Action{ReplyDelay: 50 * time.Millisecond}
		}
		return faultproxy.Action{}
	})
	tells := s.(*session).tells.on
	for i := range 5 {
		read()
		if err := tells.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		do(t, admin, "SET a x")
		read()
		if n := told.Load(); n != int32(i+1) {
			t.Fatalf("the key was read after %d changes, of which %d had been told", i+1, n)
		}
	}
}
