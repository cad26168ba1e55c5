package redislock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// told waits for a notice.
func told(t testing.TB, w driver.Watch) driver.Notice {
	t.Helper()
	select {
	case notice := <-w.C():
		return notice
	case <-time.After(drivertest.Patience):
		t.Fatal("no notice")
		return driver.Notice{}
	}
}

// silent reports whether there is no notice now.
func silent(w driver.Watch) bool {
	select {
	case <-w.C():
		return false
	default:
		return true
	}
}

// TestOneSubscription checks that an engine uses one connection for its own channel and the common
// one, from its first place until it is closed, however many waiters it has.
func TestOneSubscription(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL+"?prefix=p:"), plain(t, server)
	connections := func() int { return strings.Count(text(t, admin, "CLIENT LIST"), "cmd=") }
	drivertest.Granted(t, e, drivertest.Request("t0", time.Minute))
	before := connections()
	early := e.Watch(lockinfo.NewLeaseID())
	defer early.Stop()
	drivertest.Held(t, e, drivertest.Request("t0", time.Minute))
	if n := connections(); n != before {
		t.Errorf("%d connections, want %d before anybody has a place", n, before)
	}
	queued(t, e, drivertest.Request("t0", time.Minute), time.Minute, 1)
	if notice := told(t, early); notice.Token != 0 {
		t.Errorf("notice %+v, want to look", notice)
	}
	var watches []driver.Watch
	for i := range 50 {
		req := drivertest.Request(fmt.Sprint("t", i%5), time.Minute)
		drivertest.Granted(t, e, drivertest.Request(fmt.Sprint("u", i), time.Minute))
		req.Name = fmt.Sprint("u", i)
		watches = append(watches, e.Watch(req.LeaseID))
		queued(t, e, req, time.Minute, 1)
	}
	if n := connections() - before; n != 1 {
		t.Errorf("%d connections for the subscription, want 1", n)
	}
	if names := channels(t, admin); len(names) != 2 || !strings.HasPrefix(names[0], "p:holdfast:inbox:0:") || !strings.HasPrefix(names[1], "p:holdfast:inbox:0:") {
		t.Errorf("channels %q", names)
	}
	for _, w := range watches {
		if !silent(w) {
			t.Error("a notice for an engine that began to watch after the subscription")
		}
		w.Stop()
		w.Stop()
	}
	_ = e.Close()
	drivertest.Eventually(t, "no subscription is left", func() bool { return len(channels(t, admin)) == 0 })
}

// TestHandOverIsTold checks that the waiting process gets the token.
func TestHandOverIsTold(t *testing.T) {
	server := testsvc.Redis(t)
	e, other := open(t, server.URL), open(t, server.URL)
	holder := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, holder)
	var waiters []driver.AcquireRequest
	var watches []driver.Watch
	for i := range 4 {
		req := drivertest.Request("t", time.Minute)
		w := other.Watch(req.LeaseID)
		defer w.Stop()
		waiters, watches = append(waiters, queued(t, other, req, time.Minute, i+1)), append(watches, w)
		if i == 0 {
			told(t, w) // the subscription exists
		}
	}
	for i, w := range watches {
		if i%2 == 0 {
			drivertest.Release(t, e, holder)
		} else if err := e.Release(t.Context(), driver.ReleaseRequest{Name: "t", LeaseID: holder.LeaseID, KeepFor: 20 * time.Millisecond}); err != nil {
			t.Fatal(err)
		} else {
			if notice := told(t, w); notice.Token != 0 {
				t.Errorf("notice %+v after a release that keeps closed, want to look", notice)
			}
			drivertest.Eventually(t, "somebody else finds the name open", func() bool {
				wantIs(t, "refresh of no place", refresh(t, e, drivertest.Request("t", time.Minute)).Err, driver.ErrLost)
				lock, err := e.Inspect(t.Context(), "t")
				return err == nil && len(lock.Holders) == 1 && lock.Holders[0].LeaseID == waiters[i].LeaseID
			})
		}
		notice := driver.Notice{}
		for notice.Token == 0 {
			notice = told(t, w)
		}
		if token := handed(t, other, waiters[i]); token != notice.Token {
			t.Errorf("a notice of token %d, the lease has %d", notice.Token, token)
		}
		holder = waiters[i]
		for _, later := range watches[i+1:] {
			if !silent(later) {
				t.Error("a notice for a place that is not yet the first")
			}
		}
	}
}

// TestLostSubscription checks that every watch gets a notice to look after the connection was cut,
// and that no waiter is stuck.
func TestLostSubscription(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	other := open(t, server.URL)
	holder := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, other, holder)
	idle := e.Watch(lockinfo.NewLeaseID())
	defer idle.Stop()
	for range 3 {
		req := drivertest.Request("t", time.Minute)
		w := e.Watch(req.LeaseID)
		defer w.Stop()
		waiter := queued(t, e, req, time.Minute, 1)
		drivertest.Eventually(t, "the subscription is there", func() bool { return len(channels(t, admin)) == 2 })
		for !silent(idle) || !silent(w) {
			continue // received
		}
		if n := number(t, admin, "CLIENT KILL TYPE pubsub"); n != 1 {
			t.Fatalf("%d subscription connections killed, want 1", n)
		}
		drivertest.Release(t, other, holder) // perhaps without a subscription
		told(t, idle)
		told(t, w)
		handed(t, e, waiter)
		holder = waiter
	}
	req := drivertest.Request("t", time.Minute)
	w := e.Watch(req.LeaseID)
	defer w.Stop()
	queued(t, e, req, time.Minute, 1)
	server.Restart()
	told(t, w)
	wantIs(t, "refresh after a restart", refresh(t, e, req).Err, driver.ErrLost)
}

// TestNoRightToListen checks that locks are handed over without the right to channels, too. An
// engine that hands a lock to a waiter of its own reads the message in the reply.
func TestNoRightToListen(t *testing.T) {
	server := testsvc.Redis(t)
	admin := plain(t, server)
	do(t, admin, "ACL SETUSER app on >"+secret+" ~* resetchannels +@all")
	e := open(t, "redis://app:"+secret+"@"+server.Addr)
	holder := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, holder)
	waiter, next := drivertest.Request("t", time.Minute), drivertest.Request("t", time.Minute)
	w, n := e.Watch(waiter.LeaseID), e.Watch(next.LeaseID)
	defer w.Stop()
	defer n.Stop()
	queued(t, e, waiter, time.Minute, 1)
	queued(t, e, next, time.Minute, 2)
	drivertest.Eventually(t, "the server refused to subscribe", func() bool {
		return strings.Contains(text(t, admin, "INFO stats"), "acl_access_denied_channel:") || aclRefusals(t, admin) > 0
	})
	drivertest.Release(t, open(t, server.URL), holder)
	handed(t, e, waiter)
	if !silent(w) {
		t.Error("a notice without a subscription")
	}
	drivertest.Release(t, e, waiter)
	if notice := told(t, n); notice.Token != handed(t, e, next) {
		t.Errorf("the reply has the message %+v", notice)
	}
}

// aclRefusals returns how often the server refused a request for lack of a right.
func aclRefusals(t testing.TB, admin rueidis.Client) int {
	t.Helper()
	entries, err := do(t, admin, "ACL LOG").ToArray()
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
