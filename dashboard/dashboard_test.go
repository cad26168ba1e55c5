package dashboard_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/dashboard"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A site is a page for the locks of a store, in which a holder has orders/42.
type site struct {
	*dashboard.Dashboard
	engine *mem.Engine
	token  uint64
}

// newSite returns a site that is closed at the end of the test.
func newSite(t *testing.T, opts dashboard.Options) *site {
	t.Helper()
	s := &site{engine: mem.New(&mem.Options{History: true})}
	reply, err := s.engine.Acquire(t.Context(), driver.AcquireRequest{
		Name: "orders/42", LeaseID: lockinfo.NewLeaseID(), TTL: time.Hour,
		Holder: lockinfo.Holder{Host: "web-3", PID: 812, Program: "shop", Reason: "pack the order"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.token, opts.Engine, opts.Logger = reply.Token, s.engine, slog.New(slog.DiscardHandler)
	if s.Dashboard, err = dashboard.New(&opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := s.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestHandlerShows checks that the API that the page uses returns the locks of the store.
func TestHandlerShows(t *testing.T) {
	s := newSite(t, dashboard.Options{})
	for _, target := range []string{"/v1/locks", "/v1/locks/orders%2F42", "/v1/locks/orders%2F42/history"} {
		if w := ask(s, "GET", target); w.Code != 200 || !strings.Contains(w.Body.String(), "orders/42") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	if w := ask(s, "GET", "/v1/once"); w.Code != 200 {
		t.Errorf("once: %d %s", w.Code, w.Body)
	}
}

// TestPrefix checks that the page works under any prefix, with and without a slash at the end of
// the address, and with and without a slash at the end of the prefix that is stripped.
func TestPrefix(t *testing.T) {
	s := newSite(t, dashboard.Options{})
	for _, cut := range []string{"/ops/locks", "/ops/locks/", "/a:b"} {
		plain, err := url.PathUnescape(cut)
		if err != nil {
			t.Fatal(err)
		}
		h := http.StripPrefix(plain, s)
		at := strings.TrimSuffix(cut, "/")
		for _, target := range []string{"/", "/main.js", "/v1/locks", "/v1/locks/orders%2F42"} {
			if w := ask(h, "GET", at+target); w.Code != 200 {
				t.Errorf("%s: %d %s", at+target, w.Code, w.Body)
			}
		}
		if strings.HasSuffix(cut, "/") {
			continue
		}
		for _, query := range []string{"", "?x=1"} {
			asked := "https://example.com" + at + query
			w := ask(h, "GET", asked)
			base, err1 := url.Parse(asked)
			to, err2 := url.Parse(w.Header().Get("Location"))
			if err1 != nil || err2 != nil || to.IsAbs() || to.Host != "" || w.Code != 307 {
				t.Fatalf("%s: %d, to %q: %v, %v", asked, w.Code, to, err1, err2)
			}
			if got := base.ResolveReference(to).String(); got != "https://example.com"+at+"/"+query {
				t.Errorf("%s leads to %s", asked, got)
			}
		}
	}
}

// TestNothingElseIsLetThrough checks that the page refuses requests for engines, leases, results
// and secrets.
func TestNothingElseIsLetThrough(t *testing.T) {
	s := newSite(t, dashboard.Options{Authorize: func(*http.Request, dashboard.Action) error { return nil }})
	for _, request := range []string{
		"POST /v1/leases", "POST /v1/leases/renew", "POST /v1/leases/check", "POST /v1/leases/downgrade", "POST /v1/leases/release", "POST /v1/driver/acquire",
		"POST /v1/driver/list", "POST /v1/driver/news", "POST /v1/once/a", "GET /v1/once/a", "PUT /v1/once/a/result", "POST /v1/once/a/fail",
		"POST /v1/onetime", "POST /v1/onetime/redeem", "POST /v1/onetime/revoke", "GET /openapi.json", "GET /metrics", "POST /v1/session", "DELETE /v1/session",
	} {
		method, target, _ := strings.Cut(request, " ")
		r := httptest.NewRequest(method, target, strings.NewReader(`{"name": "a", "token": "b"}`))
		w := send(s, r, "Content-Type", "application/json", "Idempotency-Key", "0123456789abcdef")
		if w.Code != 404 && w.Code != 405 || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
}

// TestWrongOptions checks that New returns an error, and that Handler panics, without an engine.
func TestWrongOptions(t *testing.T) {
	if _, err := dashboard.New(nil); err == nil || !strings.HasPrefix(err.Error(), "dashboard: ") {
		t.Errorf("no engine: %v", err)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "engine") {
			t.Errorf("Handler has not said so: %v", err)
		}
	}()
	dashboard.Handler(&dashboard.Options{})
}

// TestSession checks that the session contains the caller and the actions that are allowed.
func TestSession(t *testing.T) {
	var got struct {
		Caller  string
		Actions []string
		History bool
	}
	look := func(opts dashboard.Options) {
		t.Helper()
		w := ask(newSite(t, opts), "GET", "/v1/session")
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
	}
	look(dashboard.Options{})
	if got.Caller != "dashboard" || got.Actions == nil || len(got.Actions) != 0 || !got.History {
		t.Errorf("%+v", got)
	}
	look(dashboard.Options{
		Viewer:    func(r *http.Request) string { return "ann" },
		Authorize: func(*http.Request, dashboard.Action) error { return nil },
	})
	if got.Caller != "ann" || len(got.Actions) != 4 {
		t.Errorf("%+v", got)
	}
}

// TestStatus checks that /status.json returns the state of one lock, and nothing else.
func TestStatus(t *testing.T) {
	s := newSite(t, dashboard.Options{})
	acquire := func(req driver.AcquireRequest) lockinfo.LeaseID {
		req.LeaseID, req.TTL = lockinfo.NewLeaseID(), time.Hour
		if _, err := s.engine.Acquire(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		return req.LeaseID
	}
	acquire(driver.AcquireRequest{Name: "orders/42", Queue: true, WaiterTTL: time.Hour})
	acquire(driver.AcquireRequest{Name: "deploy", Holder: lockinfo.Holder{User: "ann", Person: true}})
	closed := acquire(driver.AcquireRequest{Name: "billing"})
	if err := s.engine.Release(t.Context(), driver.ReleaseRequest{Name: "billing", LeaseID: closed, KeepFor: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"orders%2F42": `"name":"orders/42","state":"held","mode":"exclusive","limit":0,"holders":[{"host":"web-3",`,
		"deploy":      `"state":"frozen"`,
		"billing":     `"state":"closed"`,
		"nobody":      `{"name":"nobody","state":"free","mode":"exclusive","limit":0,"holders":[],"held_ms":null,"queue_length":0,"oldest_wait_ms":null}`,
	} {
		w := ask(s, "GET", "/status.json?name="+name)
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if head := ask(s, "HEAD", "/status.json?name="+name); head.Code != 200 || head.Body.Len() > 0 {
			t.Errorf("%s: HEAD: %d %s", name, head.Code, head.Body)
		}
	}
	if w := ask(s, "GET", "/status.json?name=orders%2F42"); !strings.Contains(w.Body.String(), `"queue_length":1,"oldest_wait_ms":`) {
		t.Errorf("%s", w.Body)
	}
	acquire(driver.AcquireRequest{Name: "long", Holder: lockinfo.Holder{Reason: strings.Repeat("x", 3000)}})
	seen := ask(s, "GET", "/v1/locks/long").Header().Get("ETag")
	for _, header := range [][]string{{"Accept-Encoding", "gzip"}, {"If-None-Match", seen}} {
		w := ask(s, "GET", "/status.json?name=long", header...)
		if w.Code != 200 || w.Header().Get("Content-Encoding") != "" || !strings.Contains(w.Body.String(), `"state":"held"`) {
			t.Errorf("%s: %d %s %s", header, w.Code, w.Header(), w.Body)
		}
	}
	for _, target := range []string{"/status.json", "/status.json?name=", "/status.json?name=a&name=b", "/status.json?name=a%00", "/status.json?name=" + strings.Repeat("a", 600)} {
		if w := ask(s, "GET", target); w.Code != 400 {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	if w := ask(s, "GET", "/status.json?name=holdfast@server/secret"); w.Code != 403 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(s, "POST", "/status.json?name=a"); w.Code != 405 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A timed writer records its write deadline.
type timed struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (w *timed) SetWriteDeadline(until time.Time) error {
	w.until = until
	return nil
}

// TestSlowReaders checks that a client that reads nothing loses its connection within 30 s.
func TestSlowReaders(t *testing.T) {
	s := newSite(t, dashboard.Options{})
	for _, target := range []string{"/", "/main.js", "/page.css", "/status.json", "/status.json?name=orders%2F42"} {
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		if left := time.Until(w.until); left <= 0 || left > 30*time.Second {
			t.Errorf("%s: the client may read for %s, want 30s", target, left)
		}
	}
}
