package driverdoor

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestSessionsAreForgotten checks that a place is watched as long as it is refreshed, and that the
// server deletes the session of a client that is gone.
func TestSessionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		features, err := driver.FeaturesOf(engine)
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		d := newDesk(&door.House{Engine: engine, Features: features, Limits: limit.New(limit.Max{})}, mux)
		defer d.close()
		d.leases()
		client := string(lockinfo.NewLeaseID())
		ask := func(method string, v any) {
			t.Helper()
			body, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodPost, form.Base+method, strings.NewReader(string(body)))
			r.Header.Set("Content-Type", form.JSON)
			r.Header.Set(form.Client, client)
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, r.WithContext(caller.With(r.Context(), &caller.Caller{Name: "ada", Rights: caller.All})))
			if answer.Code != http.StatusOK {
				t.Fatalf("%s: %s", method, answer.Body)
			}
		}
		places := func() (watched int) {
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, s := range d.sessions {
				watched += len(s.watched)
			}
			return watched
		}
		drivertest.Granted(t, engine, drivertest.Request("job", 24*time.Hour))
		req := drivertest.Request("job", time.Hour)
		req.Queue, req.WaiterTTL = true, 10*time.Second
		ask(form.Acquire, req)
		refresh := form.Batch[driver.RefreshRequest]{Requests: []driver.RefreshRequest{{Name: "job", LeaseID: req.LeaseID, WaiterTTL: req.WaiterTTL}}}
		for range 5 {
			time.Sleep(9 * time.Second)
			ask(form.Refresh, refresh)
		}
		if n := places(); n != 1 {
			t.Errorf("%d places are watched, want the one that is refreshed", n)
		}
		req.WaiterTTL, refresh.Requests[0].WaiterTTL = time.Second, time.Second
		ask(form.Refresh, refresh)
		ask(form.Acquire, req)
		time.Sleep(5 * time.Second)
		if n := places(); n != 1 {
			t.Errorf("%d places are watched, want the one that lasts for longer than the latest requests asked for", n)
		}
		time.Sleep(6 * time.Second)
		if n := places(); n != 0 {
			t.Errorf("%d places are watched that nobody refreshes", n)
		}
		other := drivertest.Request("free", time.Hour)
		other.Queue, other.WaiterTTL = true, time.Hour
		ask(form.Acquire, other)
		if n := places(); n != 0 {
			t.Errorf("%d places are watched, of a request that was granted", n)
		}
		time.Sleep(sessionMemory + time.Second)
		d.mu.Lock()
		left := len(d.sessions)
		d.mu.Unlock()
		if left != 0 {
			t.Errorf("%d sessions are left", left)
		}
	})
}

// TestNoticesAreBounded checks that a client that queues again and again without opening a stream
// uses bounded memory.
func TestNoticesAreBounded(t *testing.T) {
	d := newDesk(&door.House{}, http.NewServeMux())
	defer d.close()
	d.mu.Lock()
	s := d.sessionLocked(sessionKey{"ada", "client"})
	d.mu.Unlock()
	first := lockinfo.NewLeaseID()
	s.backlog.tell(first, driver.Notice{})
	for range 2 * mostNotices {
		s.backlog.tell(lockinfo.NewLeaseID(), driver.Notice{})
	}
	s.backlog.tell(first, driver.Notice{Token: 7})
	all := s.backlog.take()
	if len(all) != mostNotices || !slices.Contains(all, any(form.Message{LeaseID: first, Token: 7})) {
		t.Errorf("%d notices are kept, want %d, and the latest of the first place", len(all), mostNotices)
	}
}
