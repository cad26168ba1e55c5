package leasedoor_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// lookAt reads several locks in one request.
func (s *site) lookAt(names ...string) (v wire.Looked) {
	s.Helper()
	s.do(http.StatusOK, "POST", "/v1/locks/look", "", wire.LookRequest{Names: names}, &v)
	return v
}

// TestLook checks that a request for many names returns for each what a request for it alone
// returns, in the requested order.
func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := open(t, engine).async()
		names := []string{
			"held", "free", "queued", "seats", "broken", "done", "begun", "kept", "a/b", "..", "%2F", "日本語/鍵", `"`, `<img src=x onerror=alert(1)>`, "look", "held",
			strings.Repeat("/", 512), strings.Repeat("ü", 256),
		}
		for _, name := range []string{"held", "queued", "a/b", "..", `"`, "look"} {
			s.lease(name, key, wire.LeaseRequest{Reason: "film", Holder: &wire.Self{Label: "nightly"}})
		}
		s.do(http.StatusAccepted, "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "queued", WaitMS: 1}, nil)
		s.lease("seats", key, wire.LeaseRequest{Mode: "semaphore", Limit: 3, Permits: 2})
		broken := s.lease("broken", key, wire.LeaseRequest{})
		s.do(http.StatusOK, "POST", "/v1/locks/broken/break", "", wire.BreakRequest{FencingToken: broken.FencingToken, Reason: "stuck"}, nil)
		kept := s.lease("kept", key, wire.LeaseRequest{MinHoldMS: 60_000})
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(kept), nil)
		var run wire.Lease
		for _, once := range []string{"done", "begun"} {
			s.do(http.StatusCreated, "POST", "/v1/once/"+once, key, wire.OnceRequest{}, &run)
			if once == "done" {
				s.do(http.StatusNoContent, "PUT", "/v1/once/done/result", "", wire.OnceResult{LeaseID: run.LeaseID, Result: json.RawMessage("7")}, nil)
			}
		}
		got := s.lookAt(names...)
		if len(got.Locks) != len(names) || len(got.Failed) != 0 || got.Failed == nil {
			t.Fatalf("%d locks, failed %v", len(got.Locks), got.Failed)
		}
		for i, name := range names {
			path := "/v1/locks/" + url.PathEscape(name)
			if name == ".." {
				path = "/v1/locks/%2E%2E"
			}
			want := s.do(http.StatusOK, "GET", path, "", nil, nil).Body.String()
			if text, err := json.Marshal(got.Locks[i]); err != nil || string(text)+"\n" != want || got.Locks[i].Name != name {
				t.Errorf("%q: %s, alone it is %s", name, text, want)
			}
		}
		all := map[string]wire.LockDetails{}
		for _, l := range got.Locks {
			all[l.Name] = l
		}
		if l := all["queued"]; len(l.Queue) != 1 || l.QueueLength != 1 || l.Holders[0].Label != "nightly" || l.Holders[0].Reason != "film" {
			t.Errorf("queued: %+v", l)
		}
		if l := all["broken"]; len(l.Broken) != 1 || l.Held || l.Broken[0].Reason != "stuck" {
			t.Errorf("broken: %+v", l)
		}
		if all["done"].Once == nil || all["done"].Once.State != "done" || all["begun"].Once == nil || all["begun"].Once.State != "in_progress" || all["held"].Once != nil {
			t.Errorf("once: %+v, %+v, %+v", all["done"].Once, all["begun"].Once, all["held"].Once)
		}
		if l := all["kept"]; l.Held || len(l.Holders) != 1 || !l.Holders[0].Released {
			t.Errorf("kept closed: %+v", l)
		}
		if strings.Contains(fmt.Sprintf("%+v", got), run.LeaseID) {
			t.Error("an answer has a lease ID")
		}
	})
}

// TestLookIsCheap checks that reading 128 names takes one request, which sends three requests for
// each name to the store, at most 32 at a time.
func TestLookIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked, now, most := map[string]int{}, 0, 0
		engine := &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, r hook.Request, send func() error) error {
			mu.Lock()
			asked[r.Method]++
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Millisecond) // a round trip
			defer func() {
				mu.Lock()
				now--
				mu.Unlock()
			}()
			return send()
		}}
		s := open(t, engine)
		names := make([]string, driver.MaxBatch)
		for i := range names {
			names[i] = fmt.Sprintf("n/%d", i)
			if i%2 == 0 { // the others are free
				s.lease(names[i], keyOf(i), wire.LeaseRequest{})
			}
		}
		mu.Lock()
		clear(asked)
		most = 0
		mu.Unlock()
		began := time.Now()
		s.lookAt(names...)
		if took := time.Since(began); took != 12*time.Millisecond { // 4 rounds of 3
			t.Errorf("took %s of round trips of 1ms, want 12ms", took)
		}
		if want := map[string]int{"Inspect": 128, "Breaks": 128, "DescribeRecord": 128}; fmt.Sprint(asked) != fmt.Sprint(want) || most != 32 {
			t.Errorf("the store was asked %v, %d at a time at most, want %v and 32", asked, most, want)
		}
		began = time.Now()
		for _, name := range names {
			s.do(http.StatusOK, "GET", "/v1/locks/"+url.PathEscape(name), "", nil, nil)
		}
		t.Logf("128 requests take %s of round trips", time.Since(began))
	})
}

// TestLookRefused checks that wrong requests, and requests for names that the caller may not read,
// are refused without a request to the store.
func TestLookRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		engine := &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, r hook.Request, send func() error) error {
			asked.Add(1)
			return send()
		}}
		s := open(t, driver.Forward{Engine: engine, Without: driver.Capabilities{OneTime: true}}) // OneTime: the server would prune
		many := make([]string, driver.MaxBatch+1)
		for i := range many {
			many[i] = "n"
		}
		for _, names := range [][]string{nil, {}, many, {""}, {"a", ""}, {"a\x00"}, {"a\u202eb"}, {strings.Repeat("x", 513)}} {
			s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/locks/look", "", wire.LookRequest{Names: names})
		}
		s.header = http.Header{"Holdfast-Timeout-Ms": {"0"}}
		s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/locks/look", "", wire.LookRequest{Names: []string{"a"}})
		s.header = nil
		for _, body := range []any{map[string]any{"name": "a"}, map[string]any{"names": "a"}, []string{"a"}, map[string]any{"names": []any{7}}, map[string]any{"names": []any{nil}}} {
			s.refused(http.StatusBadRequest, "malformed-json", "POST", "/v1/locks/look", "", body)
		}
		if p := s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/locks/look", "", wire.LookRequest{Names: []string{"a", "b\x00"}}); !strings.Contains(p.Detail, "names[1]") {
			t.Errorf("%q does not say which it is", p.Detail)
		}
		s.refused(http.StatusForbidden, "reserved-name", "POST", "/v1/locks/look", "", wire.LookRequest{Names: []string{"a", "holdfast@server/secret"}})

		ann := &caller.Caller{Name: "ann", Rights: caller.Read, Prefixes: []string{"app/", "job/"}}
		s = openWith(t, driver.Forward{Engine: engine, Without: driver.Capabilities{OneTime: true}}, server.Options{Callers: always{ann}})
		if n := asked.Load(); n != 0 {
			t.Errorf("the store was asked %d times", n)
		}
		if p := s.refused(http.StatusForbidden, "not-permitted", "POST", "/v1/locks/look", "", wire.LookRequest{Names: []string{"app/a", "zoo"}}); !strings.Contains(p.Detail, "zoo") {
			t.Errorf("%q does not say which it is", p.Detail)
		}
		if got := s.lookAt("app/a", "job/b"); len(got.Locks) != 2 {
			t.Errorf("%+v", got)
		}
		ann.Rights = caller.All &^ caller.Read
		s.refused(http.StatusForbidden, "not-permitted", "POST", "/v1/locks/look", "", wire.LookRequest{Names: []string{"app/a"}})
	})
}

// TestLookAtLongNames checks that a request for 128 of the longest names fits, however they are
// written in JSON.
func TestLookAtLongNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		for _, escape := range []string{`x`, `\"`, `\u0078`} {
			name := `"` + strings.Repeat(escape, 512) + `"`
			body := `{"names": [` + strings.Repeat(name+", ", 127) + name + `]}`
			r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/locks/look", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			var got wire.Looked
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || len(got.Locks) != 128 || len(got.Locks[127].Name) != 512 {
				t.Errorf("%s: %d bytes are answered %d %.200s", escape, len(body), w.Code, w.Body)
			}
		}
		s.refused(http.StatusRequestEntityTooLarge, "body-too-large", "POST", "/v1/locks/look", "", wire.LookRequest{Names: []string{strings.Repeat("x", 500_000)}})
	})
}

// TestLookWhereSomeFail checks that an error is reported for its name only, and that the other
// locks are returned. If the whole store is unavailable, the request is refused in time.
func TestLookWhereSomeFail(t *testing.T) {
	for name, c := range map[string]struct {
		fail   func(ctx context.Context, name string) error
		want   string // of a, b and c
		within time.Duration
	}{
		"another kind":   {fail: only("b", driver.ErrKindMismatch), want: "200 a c; b 409 kind-mismatch"},
		"no right":       {fail: only("b", driver.ErrPermission), want: "200 a c; b 403 not-permitted"},
		"all of a kind":  {fail: only("", driver.ErrKindMismatch), want: "200; a 409 kind-mismatch; b 409 kind-mismatch; c 409 kind-mismatch"},
		"one is away":    {fail: only("b", driver.ErrUnavailable), want: "200 a c; b 503 store-unavailable"},
		"one hangs":      {fail: hang("b"), want: "200 a c; b 503 store-unavailable", within: 100 * time.Millisecond},
		"all are away":   {fail: only("", driver.ErrUnavailable), want: "503 store-unavailable"},
		"all hang":       {fail: hang(""), want: "503 store-unavailable", within: 5 * time.Second},
		"no answer":      {fail: only("", errors.New("reset")), want: "503 store-unavailable"},
		"closed":         {fail: only("", driver.ErrClosed), want: "503 closed"},
		"a fault":        {fail: func(context.Context, string) error { panic("fault") }, want: "500 internal"},
		"a fault of one": {fail: func(_ context.Context, name string) error { return panicAt("b", name) }, want: "200 a c; b 500 internal"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &looking{Forward: driver.Forward{Engine: mem.New(nil)}, fail: c.fail}
				s := open(t, e)
				began := time.Now()
				w := s.send(t.Context(), "POST", "/v1/locks/look", "", wire.LookRequest{Names: []string{"a", "b", "c"}})
				if took := time.Since(began); took > c.within {
					t.Errorf("took %s", took)
				}
				if got := lookSays(t, w); got != c.want {
					t.Errorf("%s, want %s\n%s", got, c.want, w.Body)
				}
				synctest.Wait()
				e.mu.Lock()
				defer e.mu.Unlock()
				if e.asked != 3 {
					t.Errorf("%d were asked about, want 3", e.asked)
				}
			})
		})
	}
}

// TestLookAtHungStore checks that a request for many names of a hanging store waits once, not once
// for each name.
func TestLookAtHungStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &looking{Forward: driver.Forward{Engine: mem.New(nil)}, fail: hang("")}
		s := open(t, driver.Forward{Engine: e, Without: driver.Capabilities{Routes: true}})
		names := make([]string, driver.MaxBatch)
		for i := range names {
			names[i] = fmt.Sprint("n", i)
		}
		began := time.Now()
		p := s.refused(http.StatusServiceUnavailable, "store-unavailable", "POST", "/v1/locks/look", "", wire.LookRequest{Names: names})
		if took := time.Since(began); took > 5*time.Second || e.asked != 32 {
			t.Errorf("took %s, and %d were asked about: %+v", took, e.asked, p)
		}
		s.header = http.Header{"Holdfast-Timeout-Ms": {"300"}}
		began = time.Now()
		s.refused(http.StatusServiceUnavailable, "store-unavailable", "POST", "/v1/locks/look", "", wire.LookRequest{Names: names})
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("took %s of a budget of 300ms", took)
		}
	})
}

// A looking engine has a part for each name. It counts its Inspect requests, which can fail.
type looking struct {
	driver.Forward
	fail  func(ctx context.Context, name string) error
	mu    sync.Mutex
	asked int
}

func (e *looking) Capabilities() driver.Capabilities {
	c := e.Forward.Capabilities()
	c.Routes, c.OneTime = true, false
	return c
}

func (e *looking) Route(name string) uint32 { return uint32(name[0]) }

func (e *looking) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	e.mu.Lock()
	e.asked++
	e.mu.Unlock()
	if err := e.fail(ctx, name); err != nil {
		return lockinfo.LockState{}, err
	}
	return e.Forward.Inspect(ctx, name)
}

func only(which string, err error) func(context.Context, string) error {
	return func(_ context.Context, name string) error {
		if which == "" || which == name {
			return err
		}
		return nil
	}
}

func hang(which string) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		if which != "" && which != name {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

func panicAt(which, name string) error {
	if which == name {
		panic("fault")
	}
	return nil
}

// lookSays returns a reply in short form.
func lookSays(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if w.Code != http.StatusOK {
		var p wire.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(w.Code, " ", p.Code)
	}
	var v wire.Looked
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	said := "200"
	for _, l := range v.Locks {
		said += " " + l.Name
	}
	for _, f := range v.Failed {
		said += fmt.Sprintf("; %s %d %s", f.Name, f.Status, f.Code)
		if f.Detail == "" {
			t.Errorf("%+v", f)
		}
	}
	return said
}

// TestListOfTenThousand checks that a list of 10,000 locks arrives complete as lines of JSON.
func TestListOfTenThousand(t *testing.T) {
	engine := mem.New(nil)
	for i := range 10_000 {
		_, err := engine.Acquire(t.Context(), driver.AcquireRequest{
			Name: fmt.Sprintf("app/%05d", i), LeaseID: lockinfo.NewLeaseID(), TTL: time.Hour,
			Holder: lockinfo.Holder{Host: "web-3", PID: i, User: "deploy", Program: "worker", Reason: "a reason, as people give it"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, engine)
	ask := func() time.Duration {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/locks", nil)
		r.Header.Set("Accept", "application/x-ndjson")
		w := httptest.NewRecorder()
		began := time.Now()
		s.handler.ServeHTTP(w, r)
		took := time.Since(began)
		if n := bytes.Count(w.Body.Bytes(), []byte("\n")); w.Code != 200 || n != 10_000 {
			t.Fatalf("%d: %d lines", w.Code, n)
		}
		lines := bufio.NewScanner(w.Body)
		for lines.Scan() {
			if !json.Valid(lines.Bytes()) {
				t.Fatalf("%s", lines.Bytes())
			}
		}
		return took
	}
	best := ask()
	for range 4 {
		best = min(best, ask())
	}
	t.Logf("10,000 locks in %s", best)
}
