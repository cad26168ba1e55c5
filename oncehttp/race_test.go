package oncehttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/oncehttp"
)

// slow returns a handler that takes a second, and fails in its first n runs.
func slow(n int) http.HandlerFunc {
	var mu sync.Mutex
	run := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		run++
		mine := run
		mu.Unlock()
		time.Sleep(time.Second)
		if mine <= n {
			http.Error(w, fmt.Sprint("failure ", mine), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "result")
	}
}

// crowd sends n requests with the same key at once.
func crowd(s *service, n int) []reply {
	replies := make([]reply, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { replies[i] = s.post(key, "x") })
	}
	wg.Wait()
	return replies
}

func TestRaceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, nil, slow(0))
		ran := 0
		for _, r := range crowd(s, 50) {
			switch {
			case r.status == 200 && r.body == "result" && !r.replayed():
				ran++
			case r.status != 409 || r.header.Get("Retry-After") != "1" || !strings.Contains(r.body, `"code":"in_progress"`):
				t.Errorf("%+v", r)
			}
		}
		if ran != 1 || s.count() != 1 {
			t.Errorf("%d answered, %d runs, want 1", ran, s.count())
		}
	})
}

func TestRaceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, &oncehttp.Options{Await: time.Minute}, slow(3))
		start := time.Now()
		failed, ran, replayed := 0, 0, 0
		for _, r := range crowd(s, 50) {
			switch {
			case r.status == 500 && strings.HasPrefix(r.body, "failure "):
				failed++
			case r.status != 200 || r.body != "result":
				t.Errorf("%+v", r)
			case r.replayed():
				replayed++
			default:
				ran++
			}
		}
		if failed != 3 || ran != 1 || replayed != 46 || s.count() != 4 {
			t.Errorf("%d failed, %d ran, %d replayed, %d runs", failed, ran, replayed, s.count())
		}
		if took := time.Since(start); took > 4500*time.Millisecond {
			t.Errorf("it took %s, want 4 s and little more", took)
		}
	})
}

func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *service
		s = newService(t, &oncehttp.Options{Await: 3 * time.Second}, func(http.ResponseWriter, *http.Request) {
			start := time.Now()
			s.wantProblem(s.post(key, "x"), 409, "in_progress")
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("refused after %s, want 3 s", took)
			}
			var busy *holdfast.InProgressError
			if e := s.last(); !errors.As(e.Err, &busy) || busy.Waited != 3*time.Second {
				t.Errorf("observed %+v", e)
			}
		})
		s.post(key, "x")
		s.wantRuns(1)
	})
}

// TestRaceOverTheNetwork checks 50 concurrent requests with one key to a real server.
func TestRaceOverTheNetwork(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprint(wait), func(t *testing.T) {
			body := bytes.Repeat([]byte{0, 1, 254, 255, '\n'}, 10_000)
			free := make(chan struct{})
			s := newService(t, &oncehttp.Options{Await: wait}, func(w http.ResponseWriter, _ *http.Request) {
				<-free
				w.Write(body)
			})
			server := httptest.NewServer(s)
			defer server.Close()
			answers := make(chan reply, 50)
			for range 50 {
				go func() {
					r, err := http.DefaultClient.Do(outgoing(t, "POST", server.URL+"/payments", "x"))
					if err != nil {
						t.Error(err)
						answers <- reply{}
						return
					}
					answers <- received(t, r)
				}()
			}
			ran, replayed, refused := 0, 0, 0
			if wait == 0 {
				for range 49 { // while the first runs
					if r := <-answers; r.status == 409 {
						refused++
					}
				}
			}
			close(free)
			for range 50 - refused {
				switch r := <-answers; {
				case r.status != 200 || r.body != string(body):
					t.Errorf("%d with %d bytes", r.status, len(r.body))
				case r.replayed():
					replayed++
				default:
					ran++
				}
			}
			if ran != 1 || s.count() != 1 || (refused == 49) != (wait == 0) || (replayed == 49) != (wait > 0) {
				t.Errorf("%d ran (%d runs), %d replayed, %d refused", ran, s.count(), replayed, refused)
			}
		})
	}
}

// outgoing returns a client's request with the key.
func outgoing(t testing.TB, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(oncehttp.Header, oncehttp.FormatKey(key))
	return r
}
