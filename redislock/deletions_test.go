package redislock

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const telling = "?tell_deletions=1"

// tracking waits until the server counts n tracked keys.
func tracking(t *testing.T, server *testsvc.Server, keys string) {
	t.Helper()
	drivertest.Eventually(t, "the server tells of "+keys+" keys", func() bool {
		info, err := server.Do("INFO", "stats")
		return err == nil && strings.Contains(info, "tracking_total_keys:"+keys+"\r\n")
	})
}

// TestShortWorkIsNotTracked checks that the option costs nothing for a lease that is never renewed.
func TestShortWorkIsNotTracked(t *testing.T) {
	server := testsvc.Redis(t)
	drivertest.Cycle(t, open(t, server.URL), "t")
	p := faultproxy.New(t, server.Addr)
	e := open(t, "redis://"+p.Addr()+telling)
	defer e.OnLoss(func(driver.Loss) {})()
	before := p.Requests()
	drivertest.Cycle(t, e, "t")
	if n := p.Requests() - before; n != 2 {
		t.Errorf("acquire and release are %d requests", n)
	}
}

// TestOwnRenewalsAreNotTold checks that our own renewals are not reported although they change
// tracked keys, and neither are other leases of a shared lock.
func TestOwnRenewalsAreNotTold(t *testing.T) {
	server := testsvc.Redis(t)
	e, other := open(t, server.URL+telling), open(t, server.URL)
	var told atomic.Int64
	defer e.OnLoss(func(driver.Loss) { told.Add(1) })()
	mine, shared := drivertest.Request("mine", time.Minute), drivertest.Request("shared", time.Minute)
	shared.Mode = lockinfo.Shared
	drivertest.Granted(t, e, mine)
	drivertest.Granted(t, e, shared)
	for i := range 20 {
		for _, req := range []driver.AcquireRequest{mine, shared} {
			if err := extend(t, e, req, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		tracking(t, server, "2")                                             // both keys were read
		beside := drivertest.Request("shared", time.Duration(i+2)*time.Hour) // each extends the key
		beside.Mode = lockinfo.Shared
		drivertest.Granted(t, other, beside)
		drivertest.Release(t, other, beside)
	}
	if n := told.Load(); n > 0 {
		t.Errorf("received %d losses, and there was none", n)
	}
	do(t, plain(t, server), "DEL mine")
	drivertest.Eventually(t, "a deletion is reported", func() bool { return told.Load() == 1 })
}

// TestDeletionsWithoutTheRight checks that the engine works without the right, as it does without
// the option.
func TestDeletionsWithoutTheRight(t *testing.T) {
	server := testsvc.Redis(t)
	must(t, server, "ACL", "SETUSER", "app", "on", ">"+secret, "~*", "&*", "+@all", "-client|tracking")
	e := open(t, strings.Replace(server.URL, "://", "://app:"+secret+"@", 1)+telling)
	defer e.OnLoss(func(l driver.Loss) { t.Errorf("received %+v", l) })()
	req := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, req)
	for range 3 {
		if err := extend(t, e, req, time.Hour); err != nil {
			t.Error(err)
		}
	}
	do(t, plain(t, server), "DEL t")
	wantIs(t, "extend", extend(t, e, req, time.Hour), driver.ErrLost)
}

// TestChangesAreToldSeldom covers a lock that changes all the time, because many clients wait for
// it.
func TestChangesAreToldSeldom(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL+telling), plain(t, server)
	req := drivertest.Request("t", time.Minute)
	var told atomic.Int64
	defer e.OnLoss(func(driver.Loss) { told.Add(1) })()
	drivertest.Granted(t, e, req)
	began := time.Now()
	for range 20 {
		if err := extend(t, e, req, time.Hour); err != nil {
			t.Fatal(err)
		}
		tracking(t, server, "1")
		do(t, admin, "PEXPIRE t 3600000")
	}
	drivertest.Eventually(t, "a change is reported", func() bool { return told.Load() > 0 })
	if most := 2 + int64(time.Since(began)/time.Second); told.Load() > most {
		t.Errorf("received %d times in %s", told.Load(), time.Since(began))
	}
}
