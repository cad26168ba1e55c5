package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/wire"
)

// A browser keeps the cookie of a session, and says where its requests come from.
type browser struct {
	*testing.T
	handler http.Handler
	cookie  *http.Cookie // nil: none
}

// send sends a request of the page.
func (b *browser) send(method, target, body string) *httptest.ResponseRecorder {
	b.Helper()
	r := (&site{}).request(b.Context(), "", method, target, body)
	r.Host = "127.0.0.1:7420"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.sent(r)
}

// sent sends a request with the cookie, and keeps the one that it is answered with.
func (b *browser) sent(r *http.Request) *httptest.ResponseRecorder {
	b.Helper()
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if b.cookie = c; c.MaxAge < 0 {
			b.cookie = nil
		}
	}
	return w
}

// signIn signs in with a token.
func (b *browser) signIn(token string) {
	b.Helper()
	if w := b.send("POST", "/v1/session", `{"token":"`+token+`"}`); w.Code != http.StatusNoContent || b.cookie == nil {
		b.Fatalf("signing in: %d %s", w.Code, w.Body)
	}
}

// session returns who the server says that the browser is.
func (b *browser) session() (v wire.Session) {
	b.Helper()
	w := b.send("GET", "/v1/session", "")
	if err := json.Unmarshal(w.Body.Bytes(), &v); w.Code != http.StatusOK || err != nil {
		b.Fatalf("session: %d %s", w.Code, w.Body)
	}
	return v
}

// TestSession: whoever signs in with a token is who it is of, until they sign out.
func TestSession(t *testing.T) {
	s, _ := open(t, server.Options{Callers: sourceFunc(identify), Notice: "a demonstration"})
	b := &browser{T: t, handler: s}
	wantProblem(t, b.send("GET", "/v1/session", ""), 401, "not-authenticated")
	b.signIn("ci")
	want := wire.Session{
		Caller: "ci", Rights: []string{"acquire", "read", "break", "once", "onetime", "admin"}, Prefixes: []string{"ci/"},
		SignedIn: true, SignIn: true, Notice: "a demonstration", Actions: []string{"break", "hold", "release", "forget"},
	}
	if got := b.session(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if w := b.send("GET", "/v1/locks?prefix=ci/", ""); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := b.send("DELETE", "/v1/session", ""); w.Code != http.StatusNoContent || b.cookie != nil {
		t.Errorf("%d %s, cookie %v", w.Code, w.Body, b.cookie)
	}
	wantProblem(t, b.send("GET", "/v1/session", ""), 401, "not-authenticated")
}

// TestSignInOnASocket: a user of the host who signs in is who the token is of, until they
// sign out.
func TestSignInOnASocket(t *testing.T) {
	s, _ := open(t, server.Options{Callers: sourceFunc(func(r *http.Request) (*caller.Caller, error) {
		if c, err := identify(r); c != nil || err != nil {
			return c, err
		}
		return &caller.Caller{Name: "deploy", Rights: caller.Read}, nil // by the user ID
	})})
	b := &browser{T: t, handler: s}
	if v := b.session(); v.Caller != "deploy" || v.SignedIn || !v.SignIn {
		t.Errorf("%+v", v)
	}
	b.signIn("ci")
	if v := b.session(); v.Caller != "ci" || !v.SignedIn {
		t.Errorf("%+v", v)
	}
	b.send("DELETE", "/v1/session", "")
	if v := b.session(); v.Caller != "deploy" || v.SignedIn {
		t.Errorf("%+v", v)
	}
}

// TestSignInAttemptsOfMany: of very many addresses those that come last count as one, so
// that what is kept has a bound, and are told apart again when the others are forgotten.
func TestSignInAttemptsOfMany(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		guess := func(n int) int {
			r := s.request(t.Context(), "", "POST", "/v1/session", `{"token":"guess"}`)
			r.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1", n>>8, n&0xff)
			return s.send(r).Code
		}
		refused := 0
		for n := range 1020 {
			if guess(n) == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused != 10 {
			t.Errorf("%d are refused, want 10", refused)
		}
		if status := guess(1); status != http.StatusUnauthorized {
			t.Errorf("one of the first is answered %d", status)
		}
		time.Sleep(time.Minute)
		if status := guess(2000); status != http.StatusUnauthorized {
			t.Errorf("a minute later one is answered %d", status)
		}
	})
}

// TestSignInAttempts: wrong tokens are limited for each address, and right ones are not; whoever
// has tried too many waits, and the others do not notice.
func TestSignInAttempts(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		try := func(from, token string) *httptest.ResponseRecorder {
			r := s.request(t.Context(), "", "POST", "/v1/session", `{"token":"`+token+`"}`)
			r.RemoteAddr = from
			return s.send(r)
		}
		const here, near, there, six, sixNear = "192.0.2.7:1000", "192.0.2.7:2000", "192.0.2.8:1000", "[2001:db8:1:2:3::1]:1000", "[2001:db8:1:2:4::9]:7"
		for range 100 {
			if w := try(here, "ci"); w.Code != http.StatusNoContent {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		for range 10 {
			wantProblem(t, try(here, "guess"), 401, "not-authenticated")
			wantProblem(t, try(six, "guess"), 401, "not-authenticated")
		}
		for _, from := range []string{here, near, six, sixNear} {
			for _, token := range []string{"guess", "ci"} {
				w := try(from, token)
				wantProblem(t, w, 429, "too-many-sign-ins")
				if again := w.Header().Get("Retry-After"); again != "6" {
					t.Errorf("Retry-After: %s", again)
				}
			}
		}
		if w := try(there, "ci"); w.Code != http.StatusNoContent {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		time.Sleep(6 * time.Second)
		wantProblem(t, try(here, "guess"), 401, "not-authenticated")
		wantProblem(t, try(here, "guess"), 429, "too-many-sign-ins")
		time.Sleep(6 * time.Second)
		if w := try(here, "ci"); w.Code != http.StatusNoContent {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
