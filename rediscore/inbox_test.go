package rediscore

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// TestMessages lists the messages and the notices that a watch gets for them. A newer message
// replaces one that was not received, but only a grant replaces a grant.
func TestMessages(t *testing.T) {
	i := newInbox(nil, keys.Space{}, t.Context())
	id := lockinfo.NewLeaseID()
	w := i.box.Watch(id)
	for _, c := range []struct {
		messages string
		want     uint64
	}{
		{"0", 0}, {"0 5", 5}, {"5 0", 5}, {"5 7", 7}, {"7 5", 5}, {"0 0", 0}, {"5 0 7 0", 7},
		{"5 x", 5}, {"5 -1", 5}, {"5 99999999999999999999", 5}, {"5 9007199254740991", 5},
	} {
		for m := range strings.FieldsSeq(c.messages) {
			i.message("", string(id)+" "+m)
		}
		for _, nonsense := range []string{string(id), "", string(lockinfo.NewLeaseID()) + " 5"} {
			i.message("", nonsense)
		}
		select {
		case notice := <-w.C():
			if notice.Token != c.want {
				t.Errorf("messages %s: notice %+v, want token %d", c.messages, notice, c.want)
			}
		default:
			t.Errorf("messages %s: no notice", c.messages)
		}
	}
}

// TestReplyLost checks that the waiters for a name look when the reply to its release is lost, which
// may have had a message.
func TestReplyLost(t *testing.T) {
	t.Parallel()
	e := mustNew(t, parrot{reply: "no reply to a release"})
	mine, others := lockinfo.NewLeaseID(), lockinfo.NewLeaseID()
	w, o := e.Watch(mine), e.Watch(others)
	e.store.inbox.waits("a", mine, 0)
	e.store.inbox.waits("b", others, 0)
	drivertest.WantIs(t, "release", e.Release(t.Context(), driver.ReleaseRequest{Name: "a", LeaseID: lockinfo.NewLeaseID()}), nil)
	if len(w.C()) != 1 || len(o.C()) != 0 {
		t.Errorf("%d and %d notices, want one for the waiter of the name", len(w.C()), len(o.C()))
	}
}

// TestOwedMessage checks that a subscription is given up only if it does not deliver a grant that a
// refresh has found.
func TestOwedMessage(t *testing.T) {
	type waiter struct {
		*inbox
		driver.Watch
		lease lockinfo.LeaseID
	}
	wait := func(w waiter) { w.waits("n", w.lease, w.subscription()) }
	grant := func(w waiter) { w.expect(w.lease) }
	tell := func(token string) func(waiter) {
		return func(w waiter) { w.message("", string(w.lease)+" "+token) }
	}
	for what, c := range map[string]struct {
		happens []func(waiter)
		doubted bool
	}{
		"no message":                    {[]func(waiter){wait, grant}, true},
		"only one to look":              {[]func(waiter){wait, grant, tell("0")}, true},
		"it comes later":                {[]func(waiter){wait, grant, tell("5")}, false},
		"it came before":                {[]func(waiter){wait, tell("5"), grant}, false},
		"the waiter went with it":       {[]func(waiter){wait, tell("5"), waiter.Stop, grant}, false},
		"granted before we heard":       {[]func(waiter){grant}, false},
		"granted while we did not hear": {[]func(waiter){wait, waiter.deaf, waiter.subscribed, grant}, false},
		"nobody hears":                  {[]func(waiter){wait, waiter.deaf, grant}, false},
		"a new subscription meanwhile":  {[]func(waiter){wait, grant, waiter.deaf, waiter.subscribed}, false},
		"no message in the second":      {[]func(waiter){wait, waiter.deaf, waiter.subscribed, wait, grant}, true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newInbox(nil, keys.Space{}, t.Context())
				i.subscribed()
				id := lockinfo.NewLeaseID()
				w := waiter{i, i.box.Watch(id), id}
				for _, step := range c.happens {
					step(w)
				}
				time.Sleep(2 * messageLate)
				synctest.Wait()
				if doubted := len(i.suspect) > 0; doubted != c.doubted {
					t.Errorf("the subscription was doubted: %t, want %t", doubted, c.doubted)
				}
			})
		})
	}
}
