package httpfence_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/httpfence"
	"github.com/holdfast-locks/holdfast/observe"
)

// A service is a guarded handler that counts the requests it receives.
type service struct {
	http.Handler
	gate   *fence.Gate
	passed []fence.Claim // nil for a request without a claim
	events []observe.Event
}

func newService(marks fence.Marks) *service {
	s := &service{gate: newGate()}
	if marks == nil {
		marks = s.gate.Marks()
	}
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c, _ := httpfence.ClaimFromContext(r.Context())
		s.passed = append(s.passed, c)
	})
	s.Handler = httpfence.NewHandler(next, marks, &httpfence.HandlerOptions{Observer: func(e observe.Event) { s.events = append(s.events, e) }})
	return s
}

// do sends one request; header has names and values in turn.
func (s *service) do(method string, fields ...string) *http.Response {
	r := httptest.NewRequest(method, "/seats/12A", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	httpfence.Told(s.Handler)
	return w.Result()
}

func wantProblem(t *testing.T, r *http.Response, status int, code string) (token, current uint64) {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	var p struct {
		Title, Code, Detail string
		Status              int
		Token, Current      uint64
	}
	if err != nil || json.Unmarshal(body, &p) != nil {
		t.Errorf("body %q is not JSON (%v)", body, err)
	}
	if r.StatusCode != status || p.Status != status || p.Code != code || p.Title == "" || p.Detail == "" || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d, %s, %s; want %d, %s", r.StatusCode, r.Header.Get("Content-Type"), body, status, code)
	}
	return p.Token, p.Current
}

func TestHandlerRefusesMalformedTokens(t *testing.T) {
	s := newService(nil)
	requests := [][]string{
		{httpfence.Header, "1", httpfence.Header, "1"},
		{httpfence.Header, "1", httpfence.AltHeader, "1"},
		{httpfence.AltHeader, "1", httpfence.AltHeader, "2"},
		{httpfence.Header, "", httpfence.AltHeader, "1"},
	}
	for _, value := range malformed {
		requests = append(requests, []string{httpfence.Header, value}, []string{httpfence.AltHeader, value})
	}
	for _, fields := range requests {
		for _, method := range []string{"GET", "PUT"} {
			r := s.do(method, fields...)
			if r.StatusCode != http.StatusBadRequest {
				t.Errorf("%s %q: %d, want 400", method, fields, r.StatusCode)
			}
			wantProblem(t, r, http.StatusBadRequest, "token_malformed")
		}
	}
	if len(s.passed) != 0 || len(s.events) != 0 {
		t.Errorf("%d requests were passed on, %d decided", len(s.passed), len(s.events))
	}
	// The smallest token passes: no request has raised the mark.
	if r := s.do("PUT", httpfence.Header, "1"); r.StatusCode != http.StatusOK {
		t.Errorf("the smallest token: %d, want 200", r.StatusCode)
	}
}

func TestHandlerStory(t *testing.T) {
	for _, field := range []string{httpfence.Header, httpfence.AltHeader, strings.ToLower(httpfence.Header)} {
		s := newService(nil)
		for _, c := range []struct {
			method, value string
			status        int
		}{
			{"PUT", "", 428}, {"PATCH", "", 428}, {"DELETE", "", 428}, {"POST", "", 428}, {"PURGE", "", 428},
			{"GET", "", 200}, {"HEAD", "", 200}, // a reader without a lock
			{"GET", "33", 200}, {"PUT", "33", 200}, {"PUT", "33", 200},
			{"GET", "34", 200}, // the next holder advances with its read
			{"PUT", "33", 412}, {"GET", "33", 412}, {"DELETE", `34;lease="` + leaseID + `"`, 412},
			{"PUT", "34", 200},
		} {
			var fields []string
			if c.value != "" {
				fields = []string{field, c.value}
			}
			if r := s.do(c.method, fields...); r.StatusCode != c.status {
				t.Errorf("%s with %q: %d, want %d", c.method, c.value, r.StatusCode, c.status)
			}
		}
		if len(s.passed) != 7 || s.passed[0] != nil || s.passed[6] != fence.NewClaim(34, "") {
			t.Errorf("passed on: %v", s.passed)
		}
		var kinds strings.Builder
		for _, e := range s.events {
			kinds.WriteString(strings.TrimPrefix(e.Kind.String(), "claim-")[:1])
		}
		if kinds.String() != "aaaarrra" {
			t.Errorf("events %s, want aaaarrra", kinds.String())
		}
		token, current := wantProblem(t, s.do("PUT", field, "33"), http.StatusPreconditionFailed, "token_stale")
		if token != 33 || current != 34 {
			t.Errorf("token %d, current %d; want 33, 34", token, current)
		}
		wantProblem(t, s.do("PUT"), http.StatusPreconditionRequired, "token_missing")
	}
}

// plainMarks hides that a Gate is a Writer, and fails if err is set.
type plainMarks struct {
	gate *fence.Gate
	err  error
}

func (m plainMarks) Advance(_ context.Context, resource string, c fence.Claim) error {
	return errors.Join(m.err, m.gate.Advance(resource, c))
}

func (m plainMarks) Check(_ context.Context, resource string, c fence.Claim) error {
	return errors.Join(m.err, m.gate.Check(resource, c))
}

// TestHandlerRefusesOtherResources checks that a request for a resource that no mark can name
// fails, when repeated, too.
func TestHandlerRefusesOtherResources(t *testing.T) {
	s := newService(nil)
	for _, method := range []string{"GET", "PUT"} {
		r := httptest.NewRequest(method, "/seats/"+strings.Repeat("A", 512), nil)
		r.Header.Set(httpfence.Header, "5")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		wantProblem(t, w.Result(), http.StatusBadRequest, "resource_invalid")
	}
	if len(s.passed) > 0 {
		t.Errorf("%d requests were passed on", len(s.passed))
	}
}

func TestHandlerOverAnyMarks(t *testing.T) {
	s := newService(plainMarks{gate: newGate()})
	if r := s.do("PUT", httpfence.Header, "5"); r.StatusCode != http.StatusOK {
		t.Errorf("the holder: %d, want 200", r.StatusCode)
	}
	if r := s.do("PUT", httpfence.Header, "4"); r.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("stale: %d, want 412", r.StatusCode)
	}
	broken := newService(plainMarks{gate: newGate(), err: errors.New("dial tcp 10.0.0.7: refused")})
	for _, method := range []string{"GET", "PUT"} {
		r := broken.do(method, httpfence.Header, "5")
		var body strings.Builder
		r.Body = io.NopCloser(io.TeeReader(r.Body, &body))
		wantProblem(t, r, http.StatusServiceUnavailable, "marks_unavailable")
		if strings.Contains(body.String(), "10.0.0.7") {
			t.Errorf("the answer names the store: %s", body.String())
		}
	}
	if len(broken.passed)+len(broken.events) != 0 {
		t.Errorf("%d requests were passed on without marks, %d decided", len(broken.passed), len(broken.events))
	}
}

// TestHandlerWritesInTurn checks that over a Gate no other holder is accepted while next writes.
func TestHandlerWritesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newGate()
		next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := gate.Marks().Advance(ctx, "/seats/12A", fence.NewClaim(34, "")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the next holder's Advance: %v, want it to wait", err)
			}
		})
		s := &service{Handler: httpfence.NewHandler(next, gate.Marks(), nil)}
		if r := s.do("PUT", httpfence.Header, "33"); r.StatusCode != http.StatusOK {
			t.Errorf("got %d, want 200", r.StatusCode)
		}
		if err := gate.Advance("/seats/12A", fence.NewClaim(34, "")); err != nil {
			t.Errorf("after it: %v", err)
		}
	})
}

// newGate returns a gate without any mark.
func newGate() *fence.Gate {
	g, err := fence.NewGate(nil)
	if err != nil {
		panic(err)
	}
	return g
}
