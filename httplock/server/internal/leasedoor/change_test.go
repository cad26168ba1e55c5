package leasedoor_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
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
	"github.com/holdfast-locks/holdfast/wire"
)

// knowing returns the site for a caller that knows the state with the given ETag.
func (s *site) knowing(tag string) *site {
	with := *s
	with.header = http.Header{"If-None-Match": {tag}}
	return &with
}

func (s *site) tag(name string) string {
	s.Helper()
	w := s.do(http.StatusOK, "GET", "/v1/locks/"+name, "", nil, nil)
	if w.Header().Get("ETag") == "" {
		s.Fatalf("%q has no ETag", name)
	}
	return w.Header().Get("ETag")
}

// waits sends a request that waits for a change. The channel delivers the reply and how long it
// took.
func (s *site) waits(ctx context.Context, tag, target string) <-chan waited {
	done := make(chan waited, 1)
	go func() {
		began := time.Now()
		done <- waited{s.knowing(tag).send(ctx, "GET", target, "", nil), time.Since(began)}
	}()
	synctest.Wait()
	return done
}

type waited struct {
	*httptest.ResponseRecorder
	took time.Duration
}

// looks returns an engine that counts the Inspect requests to engine, and the count.
func looks(engine driver.Engine) (driver.Engine, *atomic.Int32) {
	var n atomic.Int32
	return &hook.Engine{Forward: driver.Forward{Engine: engine}, Each: func(_ context.Context, req hook.Request, send func() error) error {
		if req.Method == "Inspect" {
			n.Add(1)
		}
		return send()
	}}, &n
}

// TestNoChange checks that a caller that knows a lock gets status 304 from any server if only time
// has passed, and after a wait only at its end. All waits for a name share the requests to the
// store. Without waits there are none.
func TestNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, looks := looks(mem.New(nil))
		a, b := open(t, engine), open(t, engine)
		l := a.lease("n", key, wire.LeaseRequest{TTLMS: 600_000, LockDelayMS: 1000})
		tag := a.tag("n")
		time.Sleep(10 * time.Second)
		a.do(http.StatusOK, "POST", "/v1/leases/renew", "", ref(l), nil)
		if other := b.tag("n"); other != tag {
			t.Errorf("the tag of what has not changed was %s, and is %s", tag, other)
		}
		w := b.knowing(`"x", `+tag).do(http.StatusNotModified, "GET", "/v1/locks/~?name=n", "", nil, nil)
		if w.Body.Len() > 0 || w.Header().Get("ETag") != tag {
			t.Errorf("304 with %v and %q", w.Header(), w.Body)
		}
		before := looks.Load()
		var all []<-chan waited
		for range 50 {
			all = append(all, b.waits(t.Context(), tag, "/v1/locks/n?wait_ms=20000"))
		}
		for _, one := range all {
			if w := <-one; w.Code != http.StatusNotModified || w.took != 20*time.Second || w.Header().Get("ETag") != tag {
				t.Fatalf("%d %s after %s, want 304 after 20s", w.Code, w.Body, w.took)
			}
		}
		if n := looks.Load() - before; n < 35 || n > 45 {
			t.Errorf("while 50 waited for 20 s there were %d looks, want 40", n)
		}
		before = looks.Load()
		time.Sleep(time.Minute)
		if n := looks.Load() - before; n != 0 {
			t.Errorf("%d looks while nobody waits", n)
		}
		if w := <-b.waits(t.Context(), tag, "/v1/locks/n?wait_ms=900000"); w.took != 55*time.Second {
			t.Errorf("the longest wait took %s", w.took)
		}
	})
}

// TestChange checks that a change ends a wait at once if the store writes history, else within half
// a second.
func TestChange(t *testing.T) {
	for what, c := range map[string]struct {
		history bool
		most    time.Duration
	}{"history": {true, 60 * time.Millisecond}, "no history": {false, 550 * time.Millisecond}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := mem.New(&mem.Options{History: c.history})
				a, b := open(t, engine), open(t, engine)
				var l wire.Lease
				for _, change := range []struct {
					what string
					do   func()
					most time.Duration // in addition to c.most
				}{
					{"acquired", func() { l = a.lease("n", key, wire.LeaseRequest{TTLMS: 9_000}) }, 0},
					{"queued", func() { a.later(t.Context(), otherKey, wire.LeaseRequest{Name: "n", WaitMS: 50_000}) }, 0},
					{"handed over", func() { a.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil) }, 0},
					{"broken", func() {
						a.do(http.StatusOK, "POST", "/v1/locks/n/break", "", wire.BreakRequest{FencingToken: look(t, engine, "n").LastToken, Reason: "r"}, nil)
					}, 0},
					{"acquired again", func() { l = a.lease("n", "", wire.LeaseRequest{TTLMS: 7_000}) }, 0},
					{"expired", func() {}, 7 * time.Second},
				} {
					tag := b.tag("n")
					began := time.Now()
					one, two := a.waits(t.Context(), tag, "/v1/locks/n?wait_ms=30000"), b.waits(t.Context(), tag, "/v1/locks/~?name=n&wait_ms=30000")
					if change.most == 0 {
						time.Sleep(3 * time.Second)
					}
					begun := time.Now()
					change.do()
					for _, done := range []<-chan waited{one, two} {
						w := <-done
						if late := time.Since(begun); w.Code != http.StatusOK || late > c.most+change.most || w.Header().Get("ETag") == tag {
							t.Errorf("%s: %d %s, %s after the change", change.what, w.Code, w.Body, late)
						}
					}
					if change.most > 0 && time.Since(began) < 3*time.Second {
						t.Errorf("%s: answered after %s", change.what, time.Since(began))
					}
					if now := b.tag("n"); now == tag {
						t.Errorf("%s: the tag is the same", change.what)
					}
				}
			})
		})
	}
}

// TestCallerKnowsMore checks that the server does not answer a wait with a state that it read
// before the request arrived. The caller may know a later state.
func TestCallerKnowsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		first := s.waits(t.Context(), s.tag("n"), "/v1/locks/n?wait_ms=10000")
		time.Sleep(700 * time.Millisecond) // the server last read the lock 200 ms ago
		s.lease("n", key, wire.LeaseRequest{})
		second := s.waits(t.Context(), s.tag("n"), "/v1/locks/n?wait_ms=10000")
		if w := <-first; w.Code != http.StatusOK {
			t.Errorf("who knew less: %d %s", w.Code, w.Body)
		}
		if w := <-second; w.Code != http.StatusNotModified || w.took != 10*time.Second {
			t.Errorf("who knew all: %d %s after %s", w.Code, w.Body, w.took)
		}
	})
}

// TestEndsOfAWaitForChange checks that a wait ends when its caller hangs up, when the caller is
// revoked, and when the server drains. Without waits the server does not read the lock. Each caller
// may have as many waits as the limit allows.
func TestEndsOfAWaitForChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, looks := looks(mem.New(nil))
		known := &fickle{}
		s := openWith(t, engine, server.Options{Callers: known, Limits: server.Limits{Waiters: 1}})
		tag := s.tag("n")
		ctx, hangUp := context.WithCancel(t.Context())
		first := s.waits(ctx, tag, "/v1/locks/n?wait_ms=30000")
		s.problem((<-s.waits(t.Context(), tag, "/v1/locks/n?wait_ms=30000")).ResponseRecorder, http.StatusTooManyRequests, "too-many-waiters")
		hangUp()
		<-first
		before := looks.Load()
		time.Sleep(10 * time.Second)
		if n := looks.Load() - before; n != 0 {
			t.Errorf("%d looks for a caller that has hung up", n)
		}
		revoked := s.waits(t.Context(), tag, "/v1/locks/n?wait_ms=50000")
		known.gone.Store(true)
		if w := <-revoked; w.took > 30*time.Second {
			t.Errorf("a caller that is revoked waits for %s", w.took)
		} else {
			s.problem(w.ResponseRecorder, http.StatusUnauthorized, "not-authenticated")
		}
		known.gone.Store(false)
		drained := s.waits(t.Context(), tag, "/v1/locks/n?wait_ms=50000")
		s.server.Drain()
		w := <-drained
		if w.took != 0 {
			t.Errorf("after %s the server drains", w.took)
		}
		s.problem(w.ResponseRecorder, http.StatusServiceUnavailable, "draining")
		s.problem((<-s.waits(t.Context(), tag, "/v1/locks/n?wait_ms=50000")).ResponseRecorder, http.StatusServiceUnavailable, "draining")
		s.knowing(tag).do(http.StatusNotModified, "GET", "/v1/locks/n", "", nil, nil)
	})
}

// fickle identifies ada until gone is set.
type fickle struct{ gone atomic.Bool }

func (f *fickle) Identify(*http.Request) (*caller.Caller, error) {
	if f.gone.Load() {
		return nil, nil
	}
	return &caller.Caller{Name: "ada", Rights: caller.All}, nil
}

// TestWaitForChangeWithoutAStore checks that a wait fails if the store is unavailable at the start
// or at the end of the wait. An outage in between does not matter.
func TestWaitForChangeWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var failure error
		fail := func(err error) { mu.Lock(); failure = err; mu.Unlock() }
		s := open(t, &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, _ hook.Request, send func() error) error {
			mu.Lock()
			err := failure
			mu.Unlock()
			if errors.Is(err, errLink) {
				panic("fault")
			}
			if err != nil {
				return err
			}
			return send()
		}})
		tag := s.tag("n")
		fail(driver.ErrUnavailable)
		w := <-s.waits(t.Context(), tag, "/v1/locks/n?wait_ms=30000")
		s.problem(w.ResponseRecorder, http.StatusServiceUnavailable, "store-unavailable")
		fail(errLink)
		w = <-s.waits(t.Context(), tag, "/v1/locks/n?wait_ms=30000")
		s.problem(w.ResponseRecorder, http.StatusInternalServerError, "internal")
		fail(nil)
		through := s.waits(t.Context(), tag, "/v1/locks/n?wait_ms=30000")
		toTheEnd := s.waits(t.Context(), tag, "/v1/locks/n?wait_ms=5000")
		time.Sleep(time.Second)
		fail(driver.ErrUnavailable)
		s.problem((<-toTheEnd).ResponseRecorder, http.StatusServiceUnavailable, "store-unavailable")
		fail(nil)
		s.lease("n", key, wire.LeaseRequest{})
		if w := <-through; w.Code != http.StatusOK || w.took > 7*time.Second {
			t.Errorf("%d %s after %s", w.Code, w.Body, w.took)
		}
	})
}
