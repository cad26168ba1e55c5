package oncehttp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/oncehttp"
)

const key = "8e03978e-40d5-43e8-bc93-6894a57f9324"

// A store is a memlock whose operations can fail: lose is called before, and answer after each
// operation.
type store struct {
	*mem.Engine

	mu           sync.Mutex
	lose, answer func(ctx context.Context, op string) error
	calls        int
}

func (s *store) do(ctx context.Context, op string, request func() error) error {
	s.mu.Lock()
	lose, answer := s.lose, s.answer
	s.calls++
	s.mu.Unlock()
	if lose != nil {
		if err := lose(ctx, op); err != nil {
			return err
		}
	}
	if err := request(); err != nil {
		return err
	}
	if answer != nil {
		return answer(ctx, op)
	}
	return nil
}

// fail sets the hooks for later operations; nil is not a failure.
func (s *store) fail(lose, answer func(ctx context.Context, op string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose, s.answer = lose, answer
}

// failing returns a hook that fails the named operations.
func failing(err error, ops ...string) func(context.Context, string) error {
	return func(_ context.Context, op string) error {
		for _, o := range ops {
			if o == op {
				return err
			}
		}
		return nil
	}
}

func (s *store) Acquire(ctx context.Context, req driver.AcquireRequest) (reply driver.AcquireReply, err error) {
	err = s.do(ctx, "acquire", func() (err error) {
		reply, err = s.Engine.Acquire(ctx, req)
		return err
	})
	return reply, err
}

func (s *store) Extend(ctx context.Context, reqs []driver.ExtendRequest) (errs []error) {
	err := s.do(ctx, "extend", func() error {
		errs = s.Engine.Extend(ctx, reqs)
		return nil
	})
	if err != nil {
		errs = make([]error, len(reqs))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

func (s *store) Complete(ctx context.Context, req driver.CompleteRequest) error {
	return s.do(ctx, "complete", func() error { return s.Engine.Complete(ctx, req) })
}

// A service is a handler behind a middleware, with its runs and events.
type service struct {
	http.Handler
	t      testing.TB
	once   *oncehttp.Middleware
	client *holdfast.Client
	store  *store

	mu     sync.Mutex
	runs   int
	events []observe.Event
}

// caller takes the caller from a header, without authentication.
func caller(r *http.Request) string {
	if c := r.Header.Get("Caller"); c != "none" {
		return "account " + c
	}
	return ""
}

func newService(t testing.TB, opts *oncehttp.Options, next http.HandlerFunc) *service {
	t.Helper()
	s := &service{t: t, store: &store{Engine: mem.New(nil)}}
	client, err := holdfast.New(s.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	var o oncehttp.Options
	if opts != nil {
		o = *opts
	}
	o.Observer = func(e observe.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}
	s.client = client
	if s.once, err = oncehttp.New(client, &o, caller); err != nil {
		t.Fatal(err)
	}
	s.Handler = s.once.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.runs++
		s.mu.Unlock()
		next(w, r)
	}))
	return s
}

// count returns how often the handler ran.
func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

func (s *service) last() observe.Event {
	s.once.Told()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) == 0 {
		s.t.Error("nothing was observed")
		return observe.Event{}
	}
	return s.events[len(s.events)-1]
}

// A reply is a response whose body was read.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) replayed() bool { return r.header.Get(oncehttp.ReplayedHeader) == "true" }

// request returns a request with header fields given as name, value, ...
func request(method, target, body string, fields ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

func (s *service) send(r *http.Request) reply {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return received(s.t, w.Result())
}

func received(t testing.TB, r *http.Response) reply {
	t.Helper()
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Errorf("body: %v after %q", err, body)
	}
	return reply{r.StatusCode, r.Header, string(body)}
}

// post sends body with the key. With the key "" it sends no key.
func (s *service) post(key, body string, fields ...string) reply {
	if key != "" {
		fields = append(fields, oncehttp.Header, key)
	}
	return s.send(request("POST", "/payments", body, fields...))
}

// wantProblem fails the test unless r is a refusal with the status and code.
func (s *service) wantProblem(r reply, status int, code string) {
	s.t.Helper()
	var p struct {
		Type, Title, Detail, Code string
		Status                    int
	}
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		s.t.Errorf("body %q: %v", r.body, err)
	}
	if r.status != status || p.Status != status || p.Code != code || p.Title != http.StatusText(status) || p.Detail == "" || p.Type != "about:blank" ||
		r.header.Get("Content-Type") != "application/problem+json" || r.replayed() {
		s.t.Errorf("got %d %s; want %d %s", r.status, r.body, status, code)
	}
	if hint := r.header.Get("Retry-After"); (status == 409 || status == 503) != (hint == "1") {
		s.t.Errorf("%s: Retry-After is %q", code, hint)
	}
	if e := s.last(); e.Kind != observe.RequestRefused || e.Code != code || e.Status != status || e.Err == nil {
		s.t.Errorf("observed %+v, want the refusal", e)
	}
}

// wantRuns fails the test unless the handler ran n times so far.
func (s *service) wantRuns(n int) {
	s.t.Helper()
	if got := s.count(); got != n {
		s.t.Errorf("the handler ran %d times, want %d", got, n)
	}
}

// state returns the state of the key in the store.
func (s *service) state() holdfast.OnceState {
	s.t.Helper()
	status, err := s.client.Records().Once(context.Background(), s.once.Name("account ", "POST /payments", key))
	if err != nil {
		s.t.Error(err)
	}
	return status.State
}
