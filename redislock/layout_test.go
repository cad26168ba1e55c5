package redislock

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// layoutCalls are all requests about a name, of an engine and of a member. Those with a lease ID
// use id.
func layoutCalls(t *testing.T, e *Engine, m driver.Member, name string, id lockinfo.LeaseID) map[string]func() error {
	all := drivertest.Calls(t.Context(), e, name)
	for _, what := range []string{"recall", "forget", "list"} { // these are not about a lock
		delete(all, what)
	}
	ask := func(what string, change func(*driver.AcquireRequest)) {
		req := drivertest.Request(name, time.Minute)
		change(&req)
		all[what] = func() error { _, err := e.Acquire(t.Context(), req); return err }
	}
	ask("repeat", func(r *driver.AcquireRequest) { r.LeaseID = id })
	ask("queue", func(r *driver.AcquireRequest) { r.Queue, r.WaiterTTL = true, time.Minute })
	ask("share", func(r *driver.AcquireRequest) { r.Mode = lockinfo.Shared })
	ask("once", func(r *driver.AcquireRequest) { r.Once = true })
	all["release, kept closed"] = func() error {
		return e.Release(t.Context(), driver.ReleaseRequest{Name: name, LeaseID: id, KeepFor: time.Minute})
	}
	all["release, no cancel"] = func() error {
		return e.Release(t.Context(), driver.ReleaseRequest{Name: name, LeaseID: id})
	}
	all["extend of the lease"] = func() error {
		return e.Extend(t.Context(), []driver.ExtendRequest{{Name: name, LeaseID: id, TTL: time.Hour}})[0]
	}
	all["break"] = func() error {
		_, err := e.Break(t.Context(), driver.BreakRequest{Name: name, ID: lockinfo.NewLeaseID(), Token: driver.MaxToken - 1, Older: true, Author: "test"})
		return err
	}
	h := proposal(name)
	all["propose"] = func() error { _, err := m.Propose(t.Context(), h); return err }
	return all
}

// memberCalls are requests that only the value of the lock can refuse.
func memberCalls(t *testing.T, m driver.Member, name string, id lockinfo.LeaseID) map[string]func() error {
	return map[string]func() error{
		"renew": func() error {
			return m.Renew(t.Context(), []driver.RenewRequest{{Name: name, LeaseID: id, TTL: time.Minute, Repair: true, Token: 5}})[0].Err
		},
		"withdraw": func() error {
			_, err := m.Withdraw(t.Context(), driver.WithdrawRequest{Name: name, LeaseID: id, Released: true, Token: 5})
			return err
		},
	}
}

// wantUnknown makes calls. Each must be refused for the layout, and change nothing, except that a
// cancel is remembered.
func wantUnknown(t *testing.T, admin rueidis.Client, layout string, calls map[string]func() error) {
	t.Helper()
	state := func() map[string]string {
		all := dump(t, admin)
		maps.DeleteFunc(all, func(key, _ string) bool { return strings.Contains(key, "}:"+kindCancelled+":") })
		return all
	}
	before := state()
	for what, call := range calls {
		err := call()
		wantIs(t, what, err, driver.ErrKindMismatch)
		wantText(t, err, `"LAYOUT `+layout+`"`)
		if !errors.Is(err, rediscore.ErrLayout) {
			t.Errorf("%s: %v is not for the layout", what, err)
		}
		if after := state(); !maps.Equal(before, after) {
			t.Fatalf("%s: the store was %v and is %v", what, before, after)
		}
	}
}

// TestUnknownLayout checks that every request about a name in the layout of another version is
// refused, and leaves it unchanged. INVARIANT I1.
func TestUnknownLayout(t *testing.T) {
	server := testsvc.Redis(t)
	e, m, admin := open(t, server.URL), admitted(t, server.URL), plain(t, server)
	id := lockinfo.NewLeaseID()
	for value, layout := range map[string]string{
		"2 " + string(id) + " 30000 1763690000123457 5 {}":    "2",
		"2 -" + string(id) + " 30000 1763690000123457 5 {}":   "2",
		"2 *" + string(id) + " 0":                             "2",
		"2 " + string(id) + "/" + string(id) + " 30000 17 {}": "2",
		"12 " + string(id) + " what will be there some day":   "12",
		"0 #" + string(id) + " what was never there":          "0",
		"02 " + string(id) + " 30000 1763690000123457 {}":     "02",
	} {
		do(t, admin, "SET", "t", value, "PX", "60000")
		wantUnknown(t, admin, layout, layoutCalls(t, e, m, "t", id))
		wantUnknown(t, admin, layout, memberCalls(t, m, "t", id))
	}
	do(t, admin, "DEL t")
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
}

// TestUnknownDetail checks the same for a name whose companions come from another version, even if
// the lock is free, or held in our layout.
func TestUnknownDetail(t *testing.T) {
	server := testsvc.Redis(t)
	e, m, admin := open(t, server.URL), admitted(t, server.URL), plain(t, server)
	for layout, fields := range map[string][]string{
		"0": {"seen", "1"}, // without a number
		"2": {"layout", "2"},
	} {
		do(t, admin, "DEL t")
		detail := companionKeys("t")[kindDetail]
		do(t, admin, "DEL", detail)
		do(t, admin, "HSET", append([]string{detail}, fields...)...)
		all := layoutCalls(t, e, m, "t", lockinfo.NewLeaseID())
		delete(all, "extend") // without a lock the lease is lost, whatever else is there
		delete(all, "extend of the lease")
		wantUnknown(t, admin, layout, all)

		group := string(lockinfo.NewLeaseID())
		do(t, admin, "SET", "t", "1 *"+group+" 0", "PX", "60000")
		all = layoutCalls(t, e, m, "t", lockinfo.LeaseID(group))
		delete(all, "propose") // the reply names the holder
		wantUnknown(t, admin, layout, all)
	}
}

// TestUnknownLayoutSpoilsNoOther checks that other names are listed, renewed and refreshed as
// usual, and that AcquireAll and the doctor report which name it is.
func TestUnknownLayoutSpoilsNoOther(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	holder, other := drivertest.Request("ours", time.Minute), drivertest.Request("theirs", time.Minute)
	drivertest.Granted(t, e, holder)
	drivertest.Granted(t, e, other)
	do(t, admin, "SET", "theirs", "2 "+string(other.LeaseID)+" 1 2 {}", "PX", "60000")

	var names []string
	for lock, err := range e.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, lock.Name)
	}
	if len(names) != 1 || names[0] != "ours" {
		t.Errorf("listed %q, want ours", names)
	}
	errs := e.Extend(t.Context(), []driver.ExtendRequest{
		{Name: "theirs", LeaseID: other.LeaseID, TTL: time.Minute}, {Name: "ours", LeaseID: holder.LeaseID, TTL: time.Minute},
	})
	wantIs(t, "extend of theirs", errs[0], driver.ErrKindMismatch)
	wantIs(t, "extend of ours", errs[1], nil)
	_, err := e.AcquireAll(t.Context(), []driver.AcquireRequest{drivertest.Request("free", time.Minute), drivertest.Request("theirs", time.Minute)})
	wantIs(t, "acquire all", err, driver.ErrKindMismatch)
	wantText(t, err, `lock "theirs": kind mismatch: another version of holdfast keeps this name in another layout: this one knows layout 1`)
	if n := number(t, admin, "EXISTS free"); n != 0 {
		t.Error("a part of AcquireAll was granted")
	}
	wantFinding(t, diagnose(t, server.URL), "layout", driver.Warn, `"theirs"`)
}
