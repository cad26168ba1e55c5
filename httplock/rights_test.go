package httplock_test

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A house identifies its callers by their tokens.
type house map[string]*caller.Caller

func (h house) Identify(r *http.Request) (*caller.Caller, error) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	return h[token], nil
}

// as returns an engine that sends token to the server.
func (n *network) as(t *testing.T, token string) *httplock.Engine {
	t.Helper()
	e, err := httplock.Open(t.Context(), "http://:"+token+"@"+first, &httplock.Options{Dial: n.dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestRights checks that each request needs its right for the requested name, and that the error
// does not contain the name.
func TestRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		callers := house{"none": {Name: "none"}, "all": {Name: "all", Rights: caller.All}}
		for _, right := range []caller.Rights{caller.Acquire, caller.Read, caller.Break, caller.Once, caller.OneTime} {
			callers[right.String()] = &caller.Caller{Name: right.String(), Rights: right, Prefixes: []string{"ours/"}}
		}
		n.with(t, first, mem.New(nil), &server.Options{Callers: callers, Logger: slog.New(slog.DiscardHandler)})
		need := map[string]string{
			"acquire": "acquire", "acquire all": "acquire", "extend": "acquire once", "release": "acquire once", "refresh": "acquire once",
			"downgrade": "acquire", "inspect": "read", "list": "read", "complete": "once", "recall": "once", "forget": "once",
		}
		for token := range callers {
			e := n.as(t, token)
			for _, name := range []string{"ours/job", "theirs/job"} {
				for method, call := range drivertest.Calls(t.Context(), e, name) {
					err := call()
					may := token == "all" || strings.HasPrefix(name, "ours/") && strings.Contains(need[method], token)
					if method == "list" {
						may = token == "all" // the calls list all names
					}
					if got := !errors.Is(err, driver.ErrPermission); got != may {
						t.Errorf("%s, with the right %s: %s: %v", name, token, method, err)
					}
					if err != nil && strings.Contains(err.Error(), "ours") {
						t.Errorf("%s: the error has the name: %v", method, err)
					}
				}
			}
		}
		_, err := httplock.Open(t.Context(), "http://"+first, &httplock.Options{Dial: n.dial})
		drivertest.WantIs(t, "without a token", err, driver.ErrPermission)
	})
}

// TestHiddenLeaseIDs checks that a caller without the admin right receives hidden lease IDs, which
// identify a lease but cannot release it.
func TestHiddenLeaseIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, store := &network{}, mem.New(nil)
		n.with(t, first, store, &server.Options{Callers: house{
			"reader": {Name: "reader", Rights: caller.All &^ caller.Admin}, "admin": {Name: "admin", Rights: caller.All},
		}})
		held := drivertest.Request("job", time.Hour)
		token := drivertest.Granted(t, store, held)
		place, _ := drivertest.Queued(t, store, "job", time.Hour)
		check := func(e *httplock.Engine, shown func(lockinfo.LeaseID) lockinfo.LeaseID) {
			t.Helper()
			lock, err := e.Inspect(t.Context(), "job")
			if err != nil || lock.Holders[0].LeaseID != shown(held.LeaseID) || lock.Queue[0].LeaseID != shown(place.LeaseID) {
				t.Errorf("inspect: %#v, %v", lock, err)
			}
			for lock, err := range e.List(t.Context(), "") {
				if err != nil || lock.Holders[0].LeaseID != shown(held.LeaseID) {
					t.Errorf("list: %#v, %v", lock, err)
				}
			}
		}
		reader, admin := n.as(t, "reader"), n.as(t, "admin")
		check(reader, lockinfo.LeaseID.Hidden)
		check(admin, func(id lockinfo.LeaseID) lockinfo.LeaseID { return id })
		broken, err := reader.Break(t.Context(), driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: "job", Token: token, Author: "ada"})
		if err != nil || len(broken) != 1 || broken[0].LeaseID != held.LeaseID.Hidden() {
			t.Errorf("break: %#v, %v", broken, err)
		}
		if broken, err = admin.Breaks(t.Context(), "job"); err != nil || len(broken) != 1 || broken[0].LeaseID != held.LeaseID {
			t.Errorf("breaks: %#v, %v", broken, err)
		}
	})
}

// TestNewsOfOthers checks that a caller who knows the name of another caller's session does not
// receive its notices.
func TestNewsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, store := &network{}, mem.New(nil)
		n.with(t, first, store, &server.Options{Callers: house{
			"ada": {Name: "ada", Rights: caller.All}, "eve": {Name: "eve", Rights: caller.All},
		}})
		ada, eve := n.as(t, "ada"), n.as(t, "eve")
		eve.SetID(ada.ID())
		held := drivertest.Request("job", time.Hour)
		drivertest.Granted(t, store, held)
		drivertest.Granted(t, store, drivertest.Request("other", time.Hour))
		req, w := drivertest.Queued(t, ada, "job", time.Hour)
		drivertest.Queued(t, eve, "other", time.Hour)
		spies := eve.Watch(req.LeaseID)
		defer spies.Stop()
		time.Sleep(time.Second)
		drivertest.Release(t, store, held)
		drivertest.HandedOver(t, w)
		synctest.Wait()
		select {
		case <-spies.C():
			t.Error("told")
		default:
		}
	})
}
