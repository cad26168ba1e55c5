package httplock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/internal/problem"
	"github.com/holdfast-locks/holdfast/wire"
)

// A badDay replaces the replies of a server while reply is set.
type badDay struct {
	reply func(w http.ResponseWriter, answer *httptest.ResponseRecorder) // nil: replies pass unchanged
	skip  bool                                                           // the server does not receive the request
}

func (b *badDay) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.reply == nil {
			h.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		if !b.skip {
			h.ServeHTTP(answer, r)
		}
		b.reply(w, answer)
	})
}

// page replies as a proxy or another kind of server would, with an HTML page.
func page(status int) func(http.ResponseWriter, *httptest.ResponseRecorder) {
	return func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
		http.Error(w, "<h1>An error has occurred</h1>", status)
	}
}

func problemOf(status int, code string) func(http.ResponseWriter, *httptest.ResponseRecorder) {
	return func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
		problem.Write(w, wire.Problem{Status: status, Code: code, Detail: "what has happened"})
	}
}

// TestReplies checks that a reply that does not come from the server leaves the outcome unknown,
// and that a definite error of the server stays definite.
func TestReplies(t *testing.T) {
	abort := func(http.ResponseWriter, *httptest.ResponseRecorder) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		reply func(http.ResponseWriter, *httptest.ResponseRecorder)
		skip  bool
		want  error // nil: the outcome is unknown
	}{
		"a connection that breaks": {reply: abort},
		"a reply that is cut off": {reply: func(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(answer.Body.Len()+1))
			_, _ = w.Write(answer.Body.Bytes())
			panic(http.ErrAbortHandler)
		}},
		"chunks that are cut off": {reply: func(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answer.Body.Bytes())
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
		"half of the JSON": {reply: func(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"outcome":`))
		}},
		"silence": {reply: func(http.ResponseWriter, *httptest.ResponseRecorder) { time.Sleep(time.Minute) }},
		"502":     {reply: page(502)}, "503 of a proxy": {reply: page(503)}, "504": {reply: page(504)}, "200 of a portal": {reply: page(200)},
		"403 of a proxy": {reply: page(403)}, "302": {reply: page(302)},
		"outcome-unknown":       {reply: problemOf(504, "outcome-unknown")},
		"another server's word": {reply: problemOf(503, "maintenance")},
		"a problem of nobody":   {reply: problemOf(403, "")},

		"429 of a proxy":    {reply: page(429), skip: true, want: driver.ErrUnavailable},
		"too many":          {reply: problemOf(429, "too-many-leases"), skip: true, want: driver.ErrUnavailable},
		"draining":          {reply: problemOf(503, "draining"), skip: true, want: driver.ErrUnavailable},
		"closed":            {reply: problemOf(503, "closed"), skip: true, want: driver.ErrUnavailable},
		"store-unavailable": {reply: problemOf(503, "store-unavailable"), skip: true, want: driver.ErrUnavailable},
		"not-authenticated": {reply: problemOf(401, "not-authenticated"), skip: true, want: driver.ErrPermission},
		"not-permitted":     {reply: problemOf(403, "not-permitted"), skip: true, want: driver.ErrPermission},
		"malformed-json":    {reply: problemOf(400, "malformed-json"), skip: true, want: driver.ErrInvalid},
		"not-found":         {reply: problemOf(404, "not-found"), skip: true, want: driver.ErrUnsupported},
		"kind-mismatch":     {reply: problemOf(409, "kind-mismatch"), skip: true, want: driver.ErrKindMismatch},
		"lost":              {reply: problemOf(410, "lost"), skip: true, want: driver.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				day := &badDay{}
				_, e := served(t, mem.New(nil), day.around)
				day.reply, day.skip = c.reply, c.skip
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				calls := drivertest.Calls(ctx, e, "job")
				for _, method := range slices.Sorted(maps.Keys(calls)) {
					switch err := calls[method](); {
					case err == nil:
						t.Errorf("%s: no error", method)
					case c.want == nil && driver.Definite(err):
						t.Errorf("%s: %v: is definite", method, err)
					case c.want != nil:
						drivertest.WantIs(t, method, err, c.want)
					}
				}
			})
		})
	}
}

// TestUnknownOutcome checks that an outcome or error code that this version does not know leaves
// the outcome unknown.
func TestUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day := &badDay{}
		_, e := served(t, mem.New(nil), day.around)
		day.reply = func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"outcome":"lent","errors":[{"code":"lent"}],"replies":[{}]}`))
		}
		calls := drivertest.Calls(t.Context(), e, "job")
		for _, method := range []string{"acquire", "extend", "refresh", "acquire all"} {
			if err := calls[method](); err == nil || driver.Definite(err) {
				t.Errorf("%s: %v", method, err)
			}
		}
	})
}

// TestNoConnection checks that without a server or a handshake the error is definite: nothing was
// done.
func TestNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, e := served(t, mem.New(nil))
		n.host(first).kill()
		for method, call := range drivertest.Calls(t.Context(), e, "job") {
			drivertest.WantIs(t, method, call(), driver.ErrUnavailable)
		}
	})
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	_, err := httplock.Open(t.Context(), "https://:s3cret@"+strings.TrimPrefix(plain.URL, "http://"), nil)
	drivertest.WantIs(t, "a server without TLS", err, driver.ErrUnavailable)
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error %v", err)
	}
	_, err = httplock.Open(t.Context(), plain.URL, nil)
	drivertest.WantIs(t, "another server", err, driver.ErrUnavailable)
}

// TestClose checks that Close ends pending requests with an error that is not definite, and that
// later requests are refused.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day := &badDay{}
		_, e := served(t, mem.New(nil), day.around)
		day.reply = func(http.ResponseWriter, *httptest.ResponseRecorder) { time.Sleep(time.Minute) }
		ended := make(chan error, 1)
		go func() {
			_, err := e.Acquire(t.Context(), drivertest.Request("job", time.Minute))
			ended <- err
		}()
		synctest.Wait()
		began := time.Now()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil || driver.Definite(err) || time.Since(began) != 0 {
			t.Errorf("error %v after %s", err, time.Since(began))
		}
		if _, err := e.Inspect(t.Context(), "job"); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("error %v", err)
		}
	})
}
