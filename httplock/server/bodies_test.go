package server_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// An unread body fails the test when it is read.
type unread struct{ *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.Helper()
	u.Error("the body was read")
	return 0, io.EOF
}

func (u unread) Close() error { return nil }

// TestRightsBeforeTheBody checks that a caller without the right, or without the right to the name
// in the path, is refused before the server reads the body.
func TestRightsBeforeTheBody(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		for _, e := range endpoints {
			lacks := e.right
			if lacks.Has(caller.Acquire) {
				lacks |= caller.Once // this right is enough if the body asks for do-once work
			}
			callers := []string{without(lacks)}
			if strings.Contains(e.pattern, "{") {
				callers = append(callers, "ci")
			}
			if e.right == 0 || e.body == "" {
				continue
			}
			for _, who := range callers {
				r := s.request(t.Context(), who, e.method(), e.path(), e.body)
				r.Body = unread{t}
				if w := s.send(r); w.Code != http.StatusForbidden {
					t.Errorf("%s by %s: %d %s", e.pattern, who, w.Code, w.Body)
				}
			}
		}
	})
}

// TestBodiesInSum checks that the bodies of one caller have a bound together, and so have all
// bodies. The bytes of a finished request no longer count. A caller without another request may
// send the longest body.
func TestBodiesInSum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, server.Options{Callers: sourceFunc(identify)})
		send := func(who, target string, length int64, body io.Reader) *httptest.ResponseRecorder {
			r := (&site{}).request(t.Context(), who, "POST", target, "{}")
			r.Body, r.ContentLength = io.NopCloser(body), length
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w
		}
		const long = 20 << 20
		slow := func(who string) (end func()) {
			from, to := io.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				send(who, "/v1/driver/complete", long, from)
			}()
			go func() { _, _ = to.Write([]byte(`{"name":"ci/x","record":"` + strings.Repeat("A", 8<<10))) }()
			synctest.Wait()
			return func() { _ = to.CloseWithError(io.ErrUnexpectedEOF); <-done }
		}
		short := func(who string) *httptest.ResponseRecorder {
			return send(who, "/v1/driver/recall", 17, strings.NewReader(`{"name":"ci/x"}  `))
		}
		end := slow("all")
		wantProblem(t, short("all"), http.StatusTooManyRequests, "too-many-bytes")
		if w := short("ci"); w.Code != http.StatusOK {
			t.Errorf("another caller: %d %s", w.Code, w.Body)
		}
		ends := []func(){end}
		for _, who := range []string{"ci", "plain"} {
			ends = append(ends, slow(who))
		}
		w := send(without(caller.Read), "/v1/driver/complete", long, unread{t})
		wantProblem(t, w, http.StatusServiceUnavailable, "busy")
		if w.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		for _, end := range ends {
			end()
		}
		for range 200 { // each would keep its bytes if the server did not release them
			for _, length := range []int64{110_000, -1} {
				if w := send("all", "/v1/driver/recall", length, strings.NewReader(`{"name":"ci/x"}`+strings.Repeat(" ", 110_000-15))); w.Code != http.StatusOK {
					t.Fatalf("after they have ended: %d %s", w.Code, w.Body)
				}
			}
		}
	})
}

// TestLongBodyBeginsWithItsName checks that the server checks the name in a long record before it
// reads the rest. A body without a length must be short.
func TestLongBodyBeginsWithItsName(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		record := strings.Repeat("QUJD", 100<<10)
		for _, c := range []struct {
			who, head string
			length    bool
			status    int
			code      string
		}{
			{"ci", `{"name":"bank/held",`, true, 403, "not-permitted"},
			{"all", `{"lease_id":"x","name":"bank/held",`, true, 400, "malformed-json"},
			{"all", `["name","bank/held",`, true, 400, "malformed-json"},
			{"all", `{"name":7,`, true, 400, "malformed-json"},
			{"all", `{"name":"bank/held",`, false, 413, "body-too-large"},
			{"all", `{"name":"bank/held",`, true, 200, ""},
		} {
			text := c.head + s.filled(leaseOf) + `,"retention_ns":60000000000,"record":"` + record + `"}`
			r := s.request(t.Context(), c.who, "POST", "/v1/driver/complete", text)
			rest := bytes.NewReader([]byte(text))
			if r.Body = io.NopCloser(rest); !c.length {
				r.ContentLength = -1
			}
			if w := s.send(r); c.status != 200 {
				wantProblem(t, w, c.status, c.code)
				if c.length && rest.Len() < 100<<10 {
					t.Errorf("%s: all but %d bytes were read", c.head, rest.Len())
				}
			} else if w.Code != 200 {
				t.Errorf("%s: %d %s", c.head, w.Code, w.Body)
			}
		}
	})
}
