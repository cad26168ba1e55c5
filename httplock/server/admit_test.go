package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// open returns a server on a new store, and its log.
func open(t *testing.T, opts server.Options) (http.Handler, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	opts.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	engine := mem.New(nil)
	s, err := server.New(engine, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(context.Background()), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return exchange.Recorded(t, s), &log
}

// wantProblem checks a refusal, and returns its problem.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code string) wire.Problem {
	t.Helper()
	var p wire.Problem
	err := json.Unmarshal(w.Body.Bytes(), &p)
	if err != nil || w.Code != status || p.Status != status || p.Code != code || p.Detail == "" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v %s, want %d %s (%v)", w.Code, w.Header(), w.Body, status, code, err)
	}
	return p
}

func problemCode(body []byte) string {
	var p wire.Problem
	_ = json.Unmarshal(body, &p) // wantProblem reports the error
	return p.Code
}

// sourceFunc is a function that implements Source.
type sourceFunc func(*http.Request) (*caller.Caller, error)

func (f sourceFunc) Identify(r *http.Request) (*caller.Caller, error) { return f(r) }

func TestUnknownCallers(t *testing.T) {
	for _, c := range []struct {
		name      string
		err       error
		status    int
		code      string
		challenge string
		detail    string
	}{
		{"nothing shown", nil, 401, "not-authenticated", `Bearer realm="holdfast"`, "send Authorization"},
		{"something wrong", caller.Wrong("the token has expired"), 401, "not-authenticated", `Bearer realm="holdfast", error="invalid_token"`, "the token has expired"},
		{"something wrong, for the log", errors.New("dial ldap-3"), 401, "not-authenticated", `Bearer realm="holdfast", error="invalid_token"`, "send Authorization"},
		{"not known now", fmt.Errorf("ldap-3: %w", caller.ErrUnavailable), 503, "callers-unavailable", "", "nothing was done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, log := open(t, server.Options{Callers: sourceFunc(func(*http.Request) (*caller.Caller, error) { return nil, c.err })})
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/locks", nil))
			p := wantProblem(t, w, c.status, c.code)
			if w.Header().Get("WWW-Authenticate") != c.challenge || !strings.Contains(p.Detail, c.detail) || strings.Contains(w.Body.String(), "ldap") {
				t.Errorf("%v %s", w.Header(), w.Body)
			}
			if want := map[int]string{401: "msg=audit what=refused", 503: "ldap-3"}[c.status]; !strings.Contains(log.String(), want) {
				t.Errorf("logged %q, want %q", log, want)
			}
		})
	}
}

// TestBrowsers checks that a server protects itself from requests that a web page makes a browser
// send. A server without callers checks the host, too.
func TestBrowsers(t *testing.T) {
	known := sourceFunc(func(*http.Request) (*caller.Caller, error) { return &caller.Caller{Name: "known"}, nil })
	unix := func(r *http.Request) *http.Request {
		return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Net: "unix"}))
	}
	for _, c := range []struct {
		host, site string
		callers    caller.Source
		unix       bool
		status     int
		code       string
	}{
		{host: "127.0.0.1", site: "none"}, {host: "127.0.0.1:7420"}, {host: "localhost"}, {host: "LOCALHOST.:7420"}, {host: "[::1]:7420"}, {host: "192.0.2.7"}, {host: "locks.example.org:80"},
		{host: "127.0.0.1", site: "same-origin"},
		{host: "rebound.example.com", status: 421, code: "wrong-host"},
		{host: "127.0.0.1.example.com:7420", status: 421, code: "wrong-host"},
		{host: "", status: 421, code: "wrong-host"},
		{host: "rebound.example.com", callers: known},
		{host: "curl", unix: true},
		{host: "127.0.0.1", site: "cross-site", status: 403, code: "cross-site"},
		{host: "127.0.0.1", site: "same-site", status: 403, code: "cross-site"},
		{host: "127.0.0.1", site: "cross-site", callers: known, status: 403, code: "cross-site"},
	} {
		t.Run(c.host+c.site, func(t *testing.T) {
			s, _ := open(t, server.Options{Callers: c.callers, Hosts: []string{"Locks.example.org"}})
			if c.status == 0 {
				c.status, c.code = 404, "not-found" // the request was admitted
			}
			for _, method := range []string{http.MethodPost, http.MethodGet} {
				r := httptest.NewRequest(method, "/v1/nothing", nil)
				r.Host = c.host
				if c.site != "" {
					r.Header.Set("Sec-Fetch-Site", c.site)
				}
				if c.unix {
					r = unix(r)
				}
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				wantProblem(t, w, c.status, c.code)
				if c.code == "wrong-host" && !strings.Contains(w.Body.String(), fmt.Sprintf(`\"%s\"`, c.host)) {
					t.Errorf("%s: the refusal does not show %q: %s", method, c.host, w.Body)
				}
				if got := w.Header().Get("Cross-Origin-Resource-Policy"); got != "same-origin" {
					t.Errorf("%s: pages of other sites may use the answer: %q", method, got)
				}
			}
		})
	}
}

// TestFromHere checks that web pages cannot reach the other handlers of a program, though these do
// not identify callers.
func TestFromHere(t *testing.T) {
	engine := mem.New(nil)
	s, err := server.New(engine, &server.Options{
		Callers: sourceFunc(func(*http.Request) (*caller.Caller, error) { return nil, nil }), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(s.Close(t.Context()), engine.Close()) }()
	h := s.FromHere(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "told") }))
	for _, c := range []struct {
		host, header, value string
		code                string
	}{
		{"127.0.0.1:6060", "", "", ""}, {"localhost:6060", "Sec-Fetch-Site", "none", ""},
		{"rebound.example.com", "", "", "wrong-host"},
		{"127.0.0.1:6060", "Sec-Fetch-Site", "cross-site", "cross-site"}, {"127.0.0.1:6060", "Sec-Fetch-Site", "same-site", "cross-site"},
		{"127.0.0.1:6060", "Origin", "https://evil.example", "cross-site"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/heap", nil)
		if r.Host = c.host; c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); problemCode(w.Body.Bytes()) != c.code || (c.code == "") != (w.Body.String() == "told") {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

func TestNothingThere(t *testing.T) {
	s, _ := open(t, server.Options{Hosts: []string{"example.com"}})
	for _, c := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/", 404, "not-found", ""},
		{"GET", "/v2/locks", 404, "not-found", ""},
		{"BREW", "/v1/nothing", 404, "not-found", ""},
		{"GET", "//v1/leases", 404, "not-found", ""},
		{"POST", "/v1/./leases", 404, "not-found", ""},
		{"POST", "/v1/locks/../leases", 404, "not-found", ""},
		{"CONNECT", "/v1/nothing", 404, "not-found", ""},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		wantProblem(t, w, c.status, c.code)
		if w.Header().Get("Allow") != c.allow {
			t.Errorf("%s %s: Allow: %q, want %q", c.method, c.path, w.Header().Get("Allow"), c.allow)
		}
	}
}

func TestLargeHeader(t *testing.T) {
	s, _ := open(t, server.Options{Hosts: []string{"example.com"}})
	r := httptest.NewRequest(http.MethodGet, "/v1/nothing", nil)
	for n := range 17 {
		r.Header.Add("Cookie", fmt.Sprint(n)+strings.Repeat("x", 1024))
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	wantProblem(t, w, http.StatusRequestHeaderFieldsTooLarge, "header-too-large")
}

// TestPanic checks that a panic ends only its own request, and that neither the reply nor the log
// shows its value.
func TestPanic(t *testing.T) {
	s, log := open(t, server.Options{Callers: sourceFunc(func(r *http.Request) (*caller.Caller, error) {
		panic("marker-of-a-secret")
	})})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/locks", nil))
	wantProblem(t, w, http.StatusInternalServerError, "internal")
	if text := w.Body.String(); strings.Contains(text, "goroutine") || strings.Contains(text, "marker") {
		t.Errorf("the caller sees %s", text)
	}
	if text := log.String(); !strings.Contains(text, "level=ERROR msg=panic what=string") || !strings.Contains(text, "admit_test.go") || strings.Contains(text, "marker") {
		t.Errorf("logged %s", text)
	}
}

// TestGuard checks that a guarded handler serves only callers who may read every lock.
func TestGuard(t *testing.T) {
	var c *caller.Caller
	engine := mem.New(nil)
	s, err := server.New(engine, &server.Options{Callers: sourceFunc(func(*http.Request) (*caller.Caller, error) { return c, nil })})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(s.Close(context.Background()), engine.Close()) }()
	guarded := s.Guard(caller.Read, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for _, who := range []struct {
		caller *caller.Caller
		status int
		code   string
	}{
		{nil, 401, "not-authenticated"},
		{&caller.Caller{Name: "shop", Rights: caller.All, Prefixes: []string{"shop/"}}, 403, "not-permitted"},
		{&caller.Caller{Name: "app", Rights: caller.Acquire}, 403, "not-permitted"},
		{&caller.Caller{Name: "ops", Rights: caller.Read}, http.StatusTeapot, ""},
	} {
		c = who.caller
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		if who.code != "" {
			wantProblem(t, w, who.status, who.code)
		} else if w.Code != who.status {
			t.Errorf("%+v: %d", who.caller, w.Code)
		}
	}
}
