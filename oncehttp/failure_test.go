package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/oncehttp"
)

func TestPanicFreesTheKey(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"at once": func(http.ResponseWriter, *http.Request) { panic(errWork) },
		"after a response": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, "x")
			panic(errWork)
		},
		"after a large response": func(w http.ResponseWriter, _ *http.Request) {
			w.Write(make([]byte, 2<<20))
			panic(errWork)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, nil, handler)
			for range 2 {
				func() {
					defer func() {
						if p := recover(); p != errWork {
							t.Errorf("panic %v, want the handler's", p)
						}
					}()
					s.post(key, "")
				}()
			}
			s.wantRuns(2)
			if s.state() != holdfast.OnceAbsent {
				t.Error(s.state())
			}
		})
	}
}

func TestStoreUnreachable(t *testing.T) {
	refused := fmt.Errorf("%w: dial tcp 10.0.0.7:6379: connection refused", holdfast.ErrUnavailable)
	for err, code := range map[error]string{
		refused:                  "store_unavailable",
		errors.New("reset"):      "store_unavailable",
		holdfast.ErrPermission:   "misconfigured",
		holdfast.ErrKindMismatch: "misconfigured",
		holdfast.ErrUnsupported:  "misconfigured",
		holdfast.ErrClosed:       "store_unavailable",
		context.DeadlineExceeded: "store_unavailable",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, nil, created())
			s.store.fail(failing(err, "acquire"), nil)
			r := s.post(key, "x")
			s.wantProblem(r, map[string]int{"store_unavailable": 503, "misconfigured": 500}[code], code)
			if strings.Contains(r.body, "10.0.0.7") {
				t.Errorf("%s names the store's host", r.body)
			}
			s.wantRuns(0)
			s.store.fail(nil, nil)
			if r := s.post(key, "x"); r.status != 201 || r.replayed() {
				t.Errorf("afterwards: %+v", r)
			}
		})
	}
}

func TestEngineWithoutRecords(t *testing.T) {
	client, err := holdfast.New(driver.Forward{Engine: mem.New(nil), Without: driver.Capabilities{Records: true}}, nil)
	if err == nil {
		t.Cleanup(func() { client.Close() })
		_, err = oncehttp.New(client, nil, caller)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t, nil, created())
	s.once, err = oncehttp.New(client, &oncehttp.Options{Observer: func(e observe.Event) { s.events = append(s.events, e) }}, caller)
	if err != nil {
		t.Fatal(err)
	}
	s.Handler = s.once.Wrap(s.Handler)
	s.wantProblem(s.post(key, "x"), 500, "misconfigured")
	s.wantRuns(0)
}

// TestWrappedTwice checks that nested middlewares for the same key report a deadlock, instead of
// waiting for each other.
func TestWrappedTwice(t *testing.T) {
	s := newService(t, nil, created())
	s.Handler = s.once.Wrap(s.Handler)
	if r := s.post(key, "x"); r.status != 500 || !strings.Contains(r.body, `"code":"misconfigured"`) {
		t.Errorf("%+v", r)
	}
	s.wantRuns(0)
	s.once.Told()
	if e := s.events[0]; len(s.events) != 2 || !errors.Is(e.Err, holdfast.ErrDeadlock) {
		t.Errorf("observed %+v", s.events)
	}
}

// TestResponseThatCannotBeStored checks that the client gets the response of completed work
// although the store fails to keep it. A repeat may then run again.
func TestResponseThatCannotBeStored(t *testing.T) {
	for _, c := range []struct {
		name         string
		lose, answer func(context.Context, string) error
		want         error
		stored       bool
	}{
		{"request lost", failing(errWork, "complete"), nil, holdfast.ErrOutcomeUnknown, false},
		{"reply lost", nil, failing(errWork, "complete"), holdfast.ErrOutcomeUnknown, true},
		{"refused", failing(holdfast.ErrUnavailable, "complete"), nil, holdfast.ErrUnavailable, false},
		{"not permitted", failing(holdfast.ErrPermission, "complete"), nil, holdfast.ErrPermission, false},
	} {
		for _, size := range []int{10, 2 << 20} {
			t.Run(fmt.Sprint(c.name, size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newService(t, nil, func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, size)) })
					s.store.fail(c.lose, c.answer)
					if r := s.post(key, "x"); r.status != 200 || len(r.body) != size {
						t.Errorf("%d with %d bytes", r.status, len(r.body))
					}
					if e := s.last(); e.Kind != observe.RequestRan || e.Kept || !errors.Is(e.Err, c.want) {
						t.Errorf("observed %+v", e)
					}
					s.store.fail(nil, nil)
					time.Sleep(2 * time.Second) // for the clean-up
					want := holdfast.OnceAbsent
					if c.stored {
						want = holdfast.OnceDone
					}
					if s.state() != want {
						t.Errorf("%s, want %s", s.state(), want)
					}
				})
			})
		}
	}
}

// TestLeaseLost checks that a handler whose lease is lost is canceled and its response withheld, so
// that only the repeat has a response.
func TestLeaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := 0
		var s *service
		s = newService(t, nil, func(w http.ResponseWriter, r *http.Request) {
			if run++; run > 1 {
				io.WriteString(w, "second")
				return
			}
			<-r.Context().Done()
			if !errors.Is(context.Cause(r.Context()), holdfast.ErrLost) {
				t.Errorf("cause %v", context.Cause(r.Context()))
			}
			time.Sleep(4 * time.Second) // past the expiry
			s.store.fail(nil, nil)
			if r := s.post(key, "x"); r.body != "second" || r.replayed() {
				t.Errorf("second: %+v", r)
			}
			io.WriteString(w, "zombie")
		})
		s.store.fail(failing(errWork, "extend"), nil)
		s.wantProblem(s.post(key, "x"), 503, "interrupted")
		if e := s.last(); !errors.Is(e.Err, holdfast.ErrLost) {
			t.Errorf("observed %+v", e)
		}
		if r := s.post(key, "x"); r.body != "second" || !r.replayed() {
			t.Errorf("third: %+v", r)
		}
	})
}

// TestLeaseLostBeforeAnError checks that a response that is not kept is sent even if the lease is
// lost.
func TestLeaseLostBeforeAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, nil, func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			http.Error(w, "lost", http.StatusInternalServerError)
		})
		s.store.fail(failing(errWork, "extend"), nil)
		if r := s.post(key, "x"); r.status != 500 || r.body != "lost\n" {
			t.Errorf("%+v", r)
		}
	})
}

// TestLeaseLostWhileStreaming checks that a large response is cut off if its lease is lost on the
// way, so that the client notices.
func TestLeaseLostWhileStreaming(t *testing.T) {
	s := newService(t, &oncehttp.Options{MaxBody: 10}, nil)
	s.Handler = s.once.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, 100_000))
		lease, _ := holdfast.LeaseFromContext(r.Context())
		s.store.Release(r.Context(), driver.ReleaseRequest{Name: lease.Name(), LeaseID: lease.ID()})
	}))
	server := httptest.NewServer(s)
	defer server.Close()
	r, err := http.DefaultClient.Do(outgoing(t, "POST", server.URL+"/payments", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if n, err := io.Copy(io.Discard, r.Body); err == nil {
		t.Errorf("%d bytes arrived as a whole", n)
	}
	if e := s.last(); e.Kind != observe.RequestRan || e.Kept || !errors.Is(e.Err, holdfast.ErrLost) {
		t.Errorf("observed %+v", e)
	}
}

// TestSilentHandler checks that the implied status 200 of a handler that returns without a response
// is not kept if the client has hung up, because the handler did nothing.
func TestSilentHandler(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler func(http.ResponseWriter)
		state   holdfast.OnceState
	}{
		{"silent", func(http.ResponseWriter) {}, holdfast.OnceAbsent},
		{"header only", func(w http.ResponseWriter) { w.Header().Set("X", "1") }, holdfast.OnceAbsent},
		{"status", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }, holdfast.OnceDone},
		{"body", func(w http.ResponseWriter) { io.WriteString(w, "x") }, holdfast.OnceDone},
		{"error", func(w http.ResponseWriter) { http.Error(w, "gone", http.StatusInternalServerError) }, holdfast.OnceAbsent},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hangUp := func() {}
				s := newService(t, nil, func(w http.ResponseWriter, r *http.Request) {
					hangUp()
					<-r.Context().Done()
					c.handler(w)
				})
				ctx, cancel := context.WithCancel(t.Context())
				hangUp = cancel
				r := s.send(request("POST", "/payments", "x", oncehttp.Header, key).WithContext(ctx))
				if s.state() != c.state {
					t.Errorf("%s, want %s", s.state(), c.state)
				}
				if c.name == "silent" || c.name == "header only" {
					s.wantProblem(r, 503, "interrupted")
					if r.header.Get("X") != "" {
						t.Error("the header of no response was sent")
					}
				}
			})
		})
	}
	// Without a hang-up, such a response is kept.
	s := newService(t, nil, func(http.ResponseWriter, *http.Request) {})
	s.post(key, "x")
	if r := s.post(key, "x"); r.status != 200 || !r.replayed() {
		t.Errorf("%+v", r)
	}
}

// TestClientHangsUpWhileItRuns checks that a client that hangs up gets the response of the running
// work with its repeat.
func TestClientHangsUpWhileItRuns(t *testing.T) {
	started, gone := make(chan struct{}), make(chan struct{})
	s := newService(t, nil, func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done() // ends with the connection
		lease, _ := holdfast.LeaseFromContext(r.Context())
		if err := lease.Context().Err(); err != nil {
			t.Errorf("the lease has ended, too: %v", err)
		}
		close(gone)
		io.WriteString(w, "done all the same")
	})
	served := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r)
		served <- struct{}{}
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		r, err := http.DefaultClient.Do(outgoing(t, "POST", server.URL+"/payments", "x").WithContext(ctx))
		if err == nil {
			r.Body.Close()
		}
		failed <- err
	}()
	<-started
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the first request: %v", err)
	}
	<-gone
	<-served
	r, err := http.DefaultClient.Do(outgoing(t, "POST", server.URL+"/payments", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if again := received(t, r); !again.replayed() || again.body != "done all the same" {
		t.Errorf("%+v", again)
	}
	s.wantRuns(1)
}

// TestClientHangsUpWhileItWaits checks that the handler does not run for a client that hangs up
// while it waits for the first request, and that this does not count as a failure of the store.
func TestClientHangsUpWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *service
		s = newService(t, &oncehttp.Options{Await: time.Hour}, func(http.ResponseWriter, *http.Request) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			s.wantProblem(s.send(request("POST", "/payments", "x", oncehttp.Header, key).WithContext(ctx)), 409, "in_progress")
		})
		s.post(key, "x")
		s.wantRuns(1)
	})
}

// TestTTL checks that the key of a process that dies at work is free after the TTL.
func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, &oncehttp.Options{TTL: 7 * time.Second}, created())
		name := s.once.Name("account ", "POST /payments", key)
		s.store.Engine.Acquire(t.Context(), driver.AcquireRequest{Name: name, LeaseID: lockinfo.NewLeaseID(), TTL: 7 * time.Second})
		s.wantProblem(s.post(key, "x"), 409, "in_progress")
		time.Sleep(7 * time.Second)
		var deadline time.Duration
		inner := s.once.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			lease, _ := holdfast.LeaseFromContext(r.Context())
			deadline = time.Until(lease.Deadline())
		}))
		s.Handler = inner
		s.post(key, "x")
		if deadline > 7*time.Second || deadline < 6*time.Second {
			t.Errorf("the lease lasts %s, want about 7s", deadline)
		}
	})
}
