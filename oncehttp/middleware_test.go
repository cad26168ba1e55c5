package oncehttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/oncehttp"
)

// created returns a handler whose response contains the number of its run.
func created() http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		n++
		w.Header().Set("Location", fmt.Sprint("/payments/", n))
		w.WriteHeader(http.StatusCreated)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "payment %d: %s", n, body)
	}
}

func TestRepeatIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, nil, created())
		first := s.post(key, "7 EUR")
		if first.status != 201 || first.body != "payment 1: 7 EUR" || first.replayed() || first.header.Get("Location") != "/payments/1" {
			t.Errorf("first: %+v", first)
		}
		if e := s.last(); e.Kind != observe.RequestRan || !e.Kept || e.Status != 201 || e.Err != nil || !strings.HasPrefix(e.Name, "http/") {
			t.Errorf("observed %+v", e)
		}
		for _, k := range []string{key, `"` + key + `"`} { // two forms of the same key
			again := s.post(k, "7 EUR")
			if again.status != 201 || again.body != first.body || !again.replayed() || again.header.Get("Location") != "/payments/1" {
				t.Errorf("repeat: %+v", again)
			}
			if e := s.last(); e.Kind != observe.RequestReplayed || e.Status != 201 {
				t.Errorf("observed %+v", e)
			}
		}
		s.wantRuns(1)
		if other := s.post("other", "7 EUR"); other.body != "payment 2: 7 EUR" || other.replayed() {
			t.Errorf("another key: %+v", other)
		}
	})
}

func TestRepeatRunsAgainAfterRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, o := range []oncehttp.Options{{}, {Retention: time.Minute}} {
			s := newService(t, &o, created())
			s.post(key, "x")
			retention := o.Retention
			if retention == 0 {
				retention = 24 * time.Hour
			}
			time.Sleep(retention - time.Millisecond)
			if r := s.post(key, "x"); !r.replayed() {
				t.Errorf("before %s: %+v", retention, r)
			}
			time.Sleep(time.Millisecond)
			if r := s.post(key, "x"); r.replayed() || r.body != "payment 2: x" {
				t.Errorf("after %s: %+v", retention, r)
			}
		}
	})
}

func TestKeysThatAreRefused(t *testing.T) {
	s := newService(t, &oncehttp.Options{Required: true}, created())
	s.wantProblem(s.post("", "x"), 400, "key_missing")
	for _, value := range malformed {
		if value == "" {
			continue // post sends no key then
		}
		s.wantProblem(s.post(value, "x"), 400, "key_malformed")
	}
	s.wantProblem(s.send(request("POST", "/payments", "x", oncehttp.Header, "")), 400, "key_malformed")
	s.wantProblem(s.send(request("POST", "/payments", "x", oncehttp.Header, key, oncehttp.Header, key)), 400, "key_malformed")
	s.wantProblem(s.post(key, "x", "Caller", "none"), 403, "caller_unknown")
	s.wantRuns(0)
	if s.store.calls != 0 {
		t.Errorf("%d requests were sent to the store", s.store.calls)
	}
}

// TestPassedOn checks that the middleware does not handle requests without a key or with another
// method.
func TestPassedOn(t *testing.T) {
	s := newService(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(http.Flusher); !ok {
			t.Errorf("%s: the handler did not get the server's writer", r.Method)
		}
	})
	for range 2 {
		s.post("", "x")
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post"} {
			s.send(request(method, "/payments", "x", oncehttp.Header, key, "Caller", "none"))
		}
	}
	s.wantRuns(14)
	if s.store.calls != 0 {
		t.Errorf("%d requests were sent to the store", s.store.calls)
	}
}

func TestMethods(t *testing.T) {
	for _, c := range []struct {
		methods []string
		handled []string
	}{
		{nil, []string{"POST", "PATCH"}},
		{[]string{"PUT", "DELETE"}, []string{"PUT", "DELETE"}},
	} {
		s := newService(t, &oncehttp.Options{Methods: c.methods}, created())
		for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE"} {
			s.send(request(method, "/payments", "x", oncehttp.Header, "key for "+method[:1]))
			before := s.count()
			s.send(request(method, "/payments", "x", oncehttp.Header, "key-for-"+method))
			s.send(request(method, "/payments", "x", oncehttp.Header, "key-for-"+method))
			want := 2
			for _, m := range c.handled {
				if m == method {
					want = 1
				}
			}
			if ran := s.count() - before; ran != want {
				t.Errorf("%v: two %s ran %d times, want %d", c.methods, method, ran, want)
			}
		}
	}
}

// TestKeyReused checks that a key with a different request is refused.
func TestKeyReused(t *testing.T) {
	s := newService(t, &oncehttp.Options{Route: func(*http.Request) string { return "all" }}, created())
	s.send(request("POST", "/payments?a=1&b=2", "x", oncehttp.Header, key))
	for _, r := range []*http.Request{
		request("POST", "/payments?a=1&b=2", "y", oncehttp.Header, key),
		request("POST", "/payments?a=1&b=2", "", oncehttp.Header, key),
		request("POST", "/payments?a=1&b=2", "x\n", oncehttp.Header, key),
		request("POST", "/payments?a=1", "&b=2x", oncehttp.Header, key),
		request("POST", "/payments?b=2&a=1", "x", oncehttp.Header, key),
		request("POST", "/payments", "x", oncehttp.Header, key),
		request("POST", "/payments/?a=1&b=2", "x", oncehttp.Header, key),
		request("POST", "/%70ayments?a=1&b=2", "x", oncehttp.Header, key),
		request("PATCH", "/payments?a=1&b=2", "x", oncehttp.Header, key),
		request("POST", "http://other/payments?a=1&b=2", "x", oncehttp.Header, key),
		request("POST", "http://example.com:8080/payments?a=1&b=2", "x", oncehttp.Header, key),
		request("POST", "/payments?a=1&b=2", "x", oncehttp.Header, key, "Content-Type", "text/csv"),
	} {
		s.wantProblem(s.send(r), 422, "key_reused")
		if e := s.last(); !errors.Is(e.Err, holdfast.ErrFingerprint) {
			t.Errorf("observed %+v", e)
		}
	}
	s.wantRuns(1)
	// Fields outside the fingerprint may differ: other headers, and the case of the host.
	r := request("POST", "http://EXAMPLE.com/payments?a=1&b=2", "x", oncehttp.Header, key, "Accept", "text/html", "Traceparent", "1")
	if again := s.send(r); !again.replayed() {
		t.Errorf("repeat: %+v", again)
	}
}

// TestVary checks that the headers in Vary are part of the request, however their values are split.
func TestVary(t *testing.T) {
	s := newService(t, &oncehttp.Options{Vary: []string{"tenant", "Accept"}}, created())
	s.post(key, "x", "Tenant", "a", "Tenant", "b")
	for _, fields := range [][]string{
		{}, {"Tenant", "a"}, {"Tenant", "b", "Tenant", "a"}, {"Tenant", "ab"}, {"Tenant", "a, b"},
		{"Tenant", "a", "Tenant", "b", "Accept", "text/html"}, {"Tenant", "a", "Accept", "b"},
		{"Tenant", "a", "Tenant", "b", "Content-Type", "text/csv"},
	} {
		s.wantProblem(s.post(key, "x", fields...), 422, "key_reused")
	}
	if r := s.post(key, "x", "Tenant", "a", "Tenant", "b", "User-Agent", "x"); !r.replayed() {
		t.Errorf("repeat: %+v", r)
	}
	s.wantRuns(1)
}

// TestAllow checks that a caller that Allow refuses does not get a kept response, whether it is
// complete or not, and that the handler does not run for the caller.
func TestAllow(t *testing.T) {
	admins := func(r *http.Request) bool { return r.Header.Get("Role") == "admin" }
	for _, o := range []oncehttp.Options{{Allow: admins}, {Allow: admins, MaxBody: 1}} {
		s := newService(t, &o, created())
		s.post(key, "x", "Role", "admin")
		for range 2 {
			refused := s.post(key, "x", "Role", "guest")
			s.wantProblem(refused, 403, "replay_not_allowed")
			if e := s.last(); e.Kind != observe.RequestRefused || strings.Contains(refused.body, "payment 1") || refused.header.Get("Location") != "" {
				t.Errorf("%+v, observed %+v", refused, e)
			}
		}
		if r := s.post(key, "x", "Role", "admin"); o.MaxBody == 0 && !r.replayed() || o.MaxBody == 1 && r.status != 410 {
			t.Errorf("for a client that may replay: %+v", r)
		}
		if r := s.post("another-key", "x", "Role", "guest"); r.status != 201 {
			t.Errorf("a first request, which the handler decides about: %+v", r)
		}
		s.wantRuns(2)
	}
}

func TestKeyReusedWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, wait := range []time.Duration{0, time.Minute} {
			var s *service
			s = newService(t, &oncehttp.Options{Await: wait}, func(http.ResponseWriter, *http.Request) {
				s.wantProblem(s.post(key, "other"), 422, "key_reused")
			})
			s.post(key, "x")
			s.wantRuns(1)
		}
	})
}

// TestKeyReusedWithAParsedForm checks that the body is compared even if it was parsed as a form
// before.
func TestKeyReusedWithAParsedForm(t *testing.T) {
	s := newService(t, nil, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.FormValue("amount")) })
	form := func(body string) reply {
		r := request("POST", "/payments", body, oncehttp.Header, key, "Content-Type", "application/x-www-form-urlencoded")
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		return s.send(r)
	}
	if r := form("amount=7"); r.body != "7" {
		t.Errorf("%+v", r)
	}
	s.wantProblem(form("amount=8"), 422, "key_reused")
	if r := form("amount=7"); !r.replayed() || r.body != "7" {
		t.Errorf("%+v", r)
	}
}

func TestKeysBelongToCallerAndRoute(t *testing.T) {
	s := newService(t, nil, created())
	mux := http.NewServeMux()
	mux.Handle("POST /payments", s.Handler)
	mux.Handle("POST /refunds/{id}", s.Handler)
	ask := func(path, caller string, throughMux bool) reply {
		h := s.Handler
		if throughMux {
			s.Handler = mux
		}
		defer func() { s.Handler = h }()
		return s.send(request("POST", path, "x", oncehttp.Header, key, "Caller", caller))
	}
	for _, mux := range []bool{false, true} {
		before := s.count()
		for _, c := range []struct{ path, caller string }{{"/payments", "a"}, {"/payments", "b"}, {"/refunds/1", "a"}, {"/refunds/1", "b"}} {
			caller := fmt.Sprint(c.caller, mux)
			if r := ask(c.path, caller, mux); r.replayed() {
				t.Errorf("%+v is replayed at first: %+v", c, r)
			}
			if r := ask(c.path, caller, mux); !r.replayed() {
				t.Errorf("%+v is not replayed: %+v", c, r)
			}
		}
		if ran := s.count() - before; ran != 4 {
			t.Errorf("%d runs, want 4", ran)
		}
	}
	// A pattern is one route for all its paths. Without a pattern each path is a route.
	s.wantProblem(ask("/refunds/2", "atrue", true), 422, "key_reused")
	if r := ask("/refunds/2", "afalse", false); r.replayed() || r.status != 201 {
		t.Errorf("%+v", r)
	}
}

// TestNames checks that a name depends on each of its three parts, and contains none of them.
func TestNames(t *testing.T) {
	s := newService(t, &oncehttp.Options{Prefix: "shop/"}, created())
	seen := map[string][3]string{}
	for _, p := range [][3]string{{"ab", "c", "d"}, {"a", "bc", "d"}, {"a", "b", "cd"}, {"abc", "", "d"}, {"", "abc", "d"}, {"ab", "c", "e"}} {
		name := s.once.Name(p[0], p[1], p[2])
		if other, there := seen[name]; there || len(name) != len("shop/")+64 || !strings.HasPrefix(name, "shop/") {
			t.Errorf("%q: %q (%q)", p, name, other)
		}
		seen[name] = p
	}
	s.post(key, "x", "Caller", "7")
	name := s.once.Name("account 7", "POST /payments", key)
	status, err := s.client.Records().Once(t.Context(), name)
	if err != nil || status.State != holdfast.OnceDone || s.last().Name != name {
		t.Errorf("%+v, %v, observed %q", status, err, s.last().Name)
	}
	if found, err := s.client.Records().Forget(t.Context(), name); !found || err != nil {
		t.Errorf("Forget = %t, %v", found, err)
	}
	s.post(key, "x", "Caller", "7")
	s.wantRuns(2)
}

// TestReason checks that the store shows the route of a request in progress as printable text.
func TestReason(t *testing.T) {
	for route, want := range map[string]string{
		"POST /payments":               "POST /payments",
		"a\x00\n\xffb":                 "a\ufffd\ufffd\ufffdb",
		strings.Repeat("é", 150):       strings.Repeat("é", 100),
		strings.Repeat("x", 199) + "é": strings.Repeat("x", 199),
	} {
		s := newService(t, &oncehttp.Options{Route: func(*http.Request) string { return route }}, func(_ http.ResponseWriter, r *http.Request) {
			lease, ok := holdfast.LeaseFromContext(r.Context())
			if !ok || lease.Holder().Reason != want || strings.Contains(lease.Holder().Fingerprint, key) {
				t.Errorf("%q: %+v", route, lease.Holder())
			}
		})
		s.post(key, "x")
		s.wantRuns(1)
	}
}

// TestFingerprintHidesTheBody checks that the fingerprint in the store depends on the key, which
// the store does not show, so that it cannot be used to guess bodies.
func TestFingerprintHidesTheBody(t *testing.T) {
	seen := map[string]bool{}
	s := newService(t, nil, func(_ http.ResponseWriter, r *http.Request) {
		lease, _ := holdfast.LeaseFromContext(r.Context())
		seen[lease.Holder().Fingerprint] = true
	})
	for _, k := range []string{key, "another"} {
		s.post(k, "7 EUR")
	}
	if len(seen) != 2 || seen[""] {
		t.Errorf("fingerprints %v, want two", seen)
	}
}

func TestProblemBase(t *testing.T) {
	s := newService(t, &oncehttp.Options{Required: true, ProblemBase: "https://api.example/problems#"}, created())
	if r := s.post("", "x"); !strings.Contains(r.body, `"type":"https://api.example/problems#key_missing"`) {
		t.Errorf("%s", r.body)
	}
}

func TestNewRefusesBadInput(t *testing.T) {
	client, err := holdfast.New(mem.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []oncehttp.Options{
		{Await: -1}, {Retention: -1}, {Retention: 1}, {Retention: holdfast.MaxRetention + 1}, {TTL: 1}, {TTL: -1},
		{MaxRequest: -1}, {MaxBody: -1}, {MaxBody: oncehttp.MaxBodyLimit + 1}, {Prefix: "a\n"}, {Prefix: "\xff"}, {Prefix: strings.Repeat("x", 129)},
	} {
		if m, err := oncehttp.New(client, &o, caller); m != nil || !errors.Is(err, holdfast.ErrInvalid) || !strings.HasPrefix(err.Error(), "oncehttp: ") {
			t.Errorf("%+v: %v, want ErrInvalid", o, err)
		}
	}
	for _, err := range []error{second(oncehttp.New(nil, nil, caller)), second(oncehttp.New(client, nil, nil))} {
		if !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%v, want ErrInvalid", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
