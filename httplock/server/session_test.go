package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/wire"
)

// A browser keeps the session cookie, and sends the headers of a page's requests.
type browser struct {
	*testing.T
	handler http.Handler
	cookie  *http.Cookie // nil: none
}

// send sends a request from the server's own page.
func (b *browser) send(method, target, body string) *httptest.ResponseRecorder {
	b.Helper()
	r := (&site{}).request(b.Context(), "", method, target, body)
	r.Host = "127.0.0.1:7420"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.sent(r)
}

// sent sends a request with the cookie, and keeps the cookie of the reply.
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

func (b *browser) signIn(token string) {
	b.Helper()
	if w := b.send("POST", "/v1/session", `{"token":"`+token+`"}`); w.Code != http.StatusNoContent || b.cookie == nil {
		b.Fatalf("signing in: %d %s", w.Code, w.Body)
	}
}

// session returns the server's view of the session.
func (b *browser) session() (v wire.Session) {
	b.Helper()
	w := b.send("GET", "/v1/session", "")
	if err := json.Unmarshal(w.Body.Bytes(), &v); w.Code != http.StatusOK || err != nil {
		b.Fatalf("session: %d %s", w.Code, w.Body)
	}
	return v
}

// TestSession checks that a browser that signs in with a token acts as the token's caller until it
// signs out.
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

// TestSignInOnASocket checks that a local user who signs in acts as the token's caller until they
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

// TestSignInBesideGuesses checks that many wrong tokens from an address do not keep the right token
// from signing in: the address may be a proxy. The log does not get a line for each guess.
func TestSignInBesideGuesses(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		try := func(token string) *httptest.ResponseRecorder {
			return s.send(s.request(t.Context(), "", "POST", "/v1/session", `{"token":"`+token+`"}`))
		}
		const seconds, each = 30, 40
		for range seconds {
			for range each {
				wantProblem(t, try("guess"), 401, "not-authenticated")
			}
			if w := try("ci"); w.Code != http.StatusNoContent {
				t.Fatalf("beside wrong tokens, the right one: %d %s", w.Code, w.Body)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		synctest.Wait() // for the last sum
		lines, counted := 0, 0
		for line := range strings.Lines(s.log.String()) {
			if n := regexp.MustCompile(`what=refused caller="" more=(\d+)`).FindStringSubmatch(line); n != nil {
				more, _ := strconv.Atoi(n[1])
				counted += more
			} else if strings.Contains(line, "not-authenticated") {
				lines++
				if !strings.Contains(line, `request="POST /v1/session"`) {
					t.Errorf("the route is not in %s", line)
				}
			}
		}
		if lines < seconds || lines > 5*seconds || lines+counted != seconds*each {
			t.Errorf("%d refusals are logged one by one, and %d are counted; want %d together, and no more than 5 lines a second", lines, counted, seconds*each)
		}
	})
}

// TestRouteOfUnknownCaller checks that the log contains the route of a refused request, and no
// name.
func TestRouteOfUnknownCaller(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		s.send(s.request(t.Context(), "guess", "GET", "/v1/locks/marker-of-a-name", ""))
		if log := s.log.String(); !strings.Contains(log, `request="GET /v1/locks/{name}"`) || strings.Contains(log, "marker-of-a-name") {
			t.Errorf("logged %q", log)
		}
	})
}
