package server_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// over checks that a session is refused, and that the cookie is deleted.
func (b *browser) over() {
	b.Helper()
	was := b.cookie
	wantProblem(b.T, b.send("GET", "/v1/locks", ""), 401, "session-over")
	if b.cookie != nil {
		b.Errorf("the cookie stays: %v", b.cookie)
	}
	b.cookie = was
}

// TestCookie checks the attributes of the cookie. Scripts and other sites cannot use it, with TLS
// it is sent over TLS only, and it has no path, so that it works under any prefix.
func TestCookie(t *testing.T) {
	s, _ := open(t, server.Options{Callers: sourceFunc(identify)})
	for _, c := range []struct {
		what   string
		change func(*http.Request)
		secure bool
	}{
		{"plain HTTP", func(*http.Request) {}, false},
		{"TLS", func(r *http.Request) { r.TLS = &tls.ConnectionState{} }, true},
		{"TLS up to a proxy", func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }, true},
		{"plain HTTP up to a proxy", func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "http") }, false},
	} {
		r := (&site{}).request(t.Context(), "", "POST", "/v1/session", `{"token":"ci"}`)
		c.change(r)
		b := &browser{T: t, handler: s}
		b.sent(r)
		got := *b.cookie
		got.Value, got.Raw = "", ""
		want := http.Cookie{Name: "holdfast_session", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: 12 * 60 * 60, Secure: c.secure}
		if got.String() != want.String() {
			t.Errorf("%s: %s, want %s", c.what, &got, &want)
		}
	}
}

// TestSessionEnds checks that a session ends after 12 hours, at every server of the store.
func TestSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		b, elsewhere := newBrowser(t, engine, nil), newBrowser(t, engine, nil)
		b.signIn("ci")
		elsewhere.cookie = b.cookie
		time.Sleep(12*time.Hour - time.Second)
		for _, one := range []*browser{b, elsewhere} {
			if v := one.session(); v.Caller != "ci" || !v.SignedIn {
				t.Errorf("%+v", v)
			}
		}
		time.Sleep(time.Second)
		b.over()
		elsewhere.over()
	})
}

// newBrowser returns a browser for a new server on engine.
func newBrowser(t *testing.T, engine driver.Engine, callers caller.Source) *browser {
	t.Helper()
	if callers == nil {
		callers = sourceFunc(identify)
	}
	s, err := server.New(engine, &server.Options{Callers: callers, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return &browser{T: t, handler: exchange.Recorded(t, s)}
}

// TestForgedSessions checks that a cookie that no server of the store has sealed is refused, even
// if only one bit differs.
func TestForgedSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBrowser(t, mem.New(nil), nil)
		b.signIn("ci")
		other := newBrowser(t, mem.New(nil), nil)
		other.signIn("ci")
		value := b.cookie.Value
		sealed, err := base64.RawURLEncoding.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(sealed), "ci") {
			t.Errorf("the token can be read in the cookie: %q", sealed)
		}
		forged := []string{"x", "====", "ci", other.cookie.Value, value + "A", value + value, strings.Repeat("A", 4096), base64.RawURLEncoding.EncodeToString([]byte("ci"))}
		for n := 1; n < len(value); n++ {
			forged = append(forged, value[:n])
		}
		for bit := range 8 * len(sealed) {
			sealed[bit/8] ^= 1 << (bit % 8)
			forged = append(forged, base64.RawURLEncoding.EncodeToString(sealed))
			sealed[bit/8] ^= 1 << (bit % 8)
		}
		for _, value := range forged {
			b.cookie = &http.Cookie{Name: "holdfast_session", Value: value}
			b.over()
		}
		b.cookie = &http.Cookie{Name: "holdfast_session", Value: value}
		if v := b.session(); v.Caller != "ci" {
			t.Errorf("%+v", v)
		}
	})
}

// TestRevokedToken checks that a session ends at the next request after its token was removed from
// the file of callers. A token that cannot be checked now does not end the session.
func TestRevokedToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "callers.json")
	token, err := caller.Add(path, caller.Caller{Name: "ann", Rights: caller.Read})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := caller.Add(path, caller.Caller{Name: "bob", Rights: caller.Read}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := caller.Open(path, &caller.FileOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	away := false
	b := newBrowser(t, mem.New(nil), sourceFunc(func(r *http.Request) (*caller.Caller, error) {
		if away {
			return nil, caller.ErrUnavailable
		}
		return file.Identify(r)
	}))
	b.signIn(token)
	if v := b.session(); v.Caller != "ann" || v.Prefixes != nil {
		t.Errorf("%+v", v)
	}
	away = true
	wantProblem(t, b.send("GET", "/v1/locks", ""), 503, "callers-unavailable")
	if away = false; b.cookie == nil {
		t.Error("an outage has ended the session")
	}
	var all map[string][]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(map[string]any{"callers": all["callers"][1:]}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := file.Reload(); err != nil { // the file would be read again a second later anyway
		t.Fatal(err)
	}
	b.over()
}

// TestWhereACookieCounts checks that a cookie counts only in requests of the server's own pages. A
// request that changes something must prove that it comes from such a page.
func TestWhereACookieCounts(t *testing.T) {
	b := newBrowser(t, mem.New(nil), nil)
	b.signIn("all")
	cookie := b.cookie
	const get, post = "GET", "POST"
	for _, c := range []struct {
		method, site, origin string
		status               int
		code                 string
	}{
		{get, "same-origin", "", 200, ""},
		{get, "none", "", 200, ""}, // the user typed the address
		{get, "", "", 200, ""},     // plain HTTP: only SameSite protects
		{get, "", "http://127.0.0.1:7420", 200, ""},
		{get, "same-site", "", 403, "cross-site"},
		{get, "cross-site", "", 403, "cross-site"},
		{get, "", "http://127.0.0.1:8080", 403, "cross-site"},
		{get, "", "null", 403, "cross-site"},
		{post, "same-origin", "", 410, "not-held"},
		{post, "same-origin", "http://127.0.0.1:7420", 410, "not-held"},
		{post, "", "http://127.0.0.1:7420", 410, "not-held"},
		{post, "", "", 403, "cross-site"},
		{post, "same-site", "http://127.0.0.1:8080", 403, "cross-site"},
		{post, "cross-site", "", 403, "cross-site"},
		{post, "", "http://127.0.0.1:8080", 403, "cross-site"},
		{post, "", "null", 403, "cross-site"},
	} {
		target, body := "/v1/locks", ""
		if c.method == post {
			target, body = "/v1/locks/x/break", `{"fencing_token":1}`
		}
		r := (&site{}).request(t.Context(), "", c.method, target, body)
		r.Host = "127.0.0.1:7420"
		for name, value := range map[string]string{"Sec-Fetch-Site": c.site, "Origin": c.origin} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := b.sent(r)
		if c.code != "" {
			wantProblem(t, w, c.status, c.code)
		}
		if w.Code != c.status || b.cookie != cookie {
			t.Errorf("%+v: %d %s; the cookie is %v", c, w.Code, w.Body, b.cookie)
		}
		b.cookie = cookie
	}
	for _, c := range []struct{ method, site string }{{post, "cross-site"}, {"DELETE", "cross-site"}, {post, "same-site"}, {"DELETE", "same-site"}} {
		r := (&site{}).request(t.Context(), "", c.method, "/v1/session", `{"token":"ci"}`)
		r.Header.Set("Sec-Fetch-Site", c.site)
		if wantProblem(t, b.sent(r), 403, "cross-site"); b.cookie != cookie {
			t.Errorf("%+v: another page has signed somebody in or out", c)
		}
	}
}

// TestHeaderWins checks that a token in the Authorization header identifies the caller whatever the
// cookie contains, and that the cookie stays.
func TestHeaderWins(t *testing.T) {
	b := newBrowser(t, mem.New(nil), nil)
	b.signIn("ci")
	for token, code := range map[string]string{"plain": "", "wrong": "not-authenticated"} {
		r := (&site{}).request(t.Context(), token, "GET", "/v1/session", "")
		w := b.sent(r)
		if code != "" {
			wantProblem(t, w, 401, code)
		} else if !strings.Contains(w.Body.String(), `"caller":"plain"`) || !strings.Contains(w.Body.String(), `"signed_in":false`) {
			t.Errorf("%s", w.Body)
		}
		if b.cookie == nil {
			t.Errorf("%s: the cookie is gone", token)
		}
	}
}

// TestLongToken checks that the longest accepted token makes a cookie that browsers accept. A
// longer token is refused, and the error does not show it.
func TestLongToken(t *testing.T) {
	b := newBrowser(t, mem.New(nil), sourceFunc(func(r *http.Request) (*caller.Caller, error) {
		return &caller.Caller{Name: r.Header.Get("Authorization")[:10], Rights: caller.Read}, nil
	}))
	b.signIn(strings.Repeat("t", 2900))
	if n := len(b.cookie.Name + "=" + b.cookie.Value); n > 4096 || b.session().Caller != "Bearer ttt" {
		t.Errorf("the cookie has %d bytes: %+v", n, b.session())
	}
	for token, says := range map[string]string{
		strings.Repeat("t", 2901): "Authorization: Bearer", "": "want one", "t t": "without spaces", "t\\n": "without spaces", "tü": "without spaces", "t\\u0000": "without spaces",
	} {
		p := wantProblem(t, b.send("POST", "/v1/session", `{"token":"`+token+`"}`), 400, "invalid")
		if !strings.Contains(p.Detail, says) || strings.Contains(p.Detail, "tt") {
			t.Errorf("%.10s: %s", token, p.Detail)
		}
	}
}

// TestNobodyIsAsked checks that a server without callers refuses requests to sign in.
func TestNobodyIsAsked(t *testing.T) {
	s, _ := open(t, server.Options{})
	b := &browser{T: t, handler: s, cookie: &http.Cookie{Name: "holdfast_session", Value: "of another server"}}
	v := b.session()
	if v.Caller != "anonymous" || v.SignIn || v.SignedIn || v.Prefixes != nil || len(v.Rights) != 6 || len(v.Actions) != 4 {
		t.Errorf("%+v", v)
	}
	wantProblem(t, b.send("POST", "/v1/session", `{"token":"x"}`), 501, "unsupported")
	if w := b.send("DELETE", "/v1/session", ""); w.Code != http.StatusNoContent || b.cookie != nil {
		t.Errorf("%d %v", w.Code, b.cookie)
	}
}

// TestActions checks that the actions are those that the caller may do and the store supports.
func TestActions(t *testing.T) {
	for rights, want := range map[caller.Rights]string{
		caller.Read: "", caller.Acquire: "hold,release", caller.Break: "break,release", caller.Once: "forget", caller.All: "break,hold,release,forget",
	} {
		who := sourceFunc(func(*http.Request) (*caller.Caller, error) {
			return &caller.Caller{Name: "ann", Rights: rights, Prefixes: []string{"a", ""}}, nil
		})
		v := newBrowser(t, mem.New(nil), who).session()
		if got := strings.Join(v.Actions, ","); got != want || v.Actions == nil || v.Prefixes != nil || v.History {
			t.Errorf("%v: %+v, want %s", rights, v, want)
		}
		plain := driver.Forward{Engine: mem.New(nil), Without: driver.Capabilities{Break: true, Records: true}}
		if v := newBrowser(t, plain, who).session(); strings.Contains(strings.Join(v.Actions, ","), "break") || strings.Contains(strings.Join(v.Actions, ","), "forget") {
			t.Errorf("%v on a store that cannot do so: %+v", rights, v)
		}
	}
}

// TestSignInWithoutSecret checks that sign-in fails, and no session ends, while the server cannot
// read its secret from the store.
func TestSignInWithoutSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := true
		engine := &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, _ hook.Request, send func() error) error {
			if away {
				return driver.ErrUnavailable
			}
			return send()
		}}
		b := newBrowser(t, engine, nil)
		wantProblem(t, b.send("POST", "/v1/session", `{"token":"ci"}`), 503, "store-unavailable")
		cookie := &http.Cookie{Name: "holdfast_session", Value: "from before the server was started again"}
		b.cookie = cookie
		if wantProblem(t, b.send("GET", "/v1/session", ""), 503, "store-unavailable"); b.cookie != cookie {
			t.Error("the cookie is gone")
		}
		b.cookie, away = nil, false
		b.signIn("ci")
		away = true
		if v := b.session(); v.Caller != "ci" {
			t.Errorf("%+v", v)
		}
	})
}

// origin marks a request as sent by the given page.
func origin(page string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Origin", page)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
}

// overUnix marks a request as received over a unix socket.
func overUnix(r *http.Request) {
	*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Net: "unix"}))
}

// TestPlainHTTPIsWarnedOf checks that the server logs one warning if tokens arrive from other hosts
// in plain text.
func TestPlainHTTPIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		what, from string
		change     func(*http.Request)
		warned     int
	}{
		{"a page of this host", "127.0.0.1:1", origin("http://127.0.0.1:7420"), 0},
		{"a page of this host, by its name", "127.0.0.1:1", origin("http://localhost:7420"), 0},
		{"a page of this host, by IPv6", "[::1]:1", origin("http://[::1]:7420"), 0},
		{"a proxy that says nothing", "127.0.0.1:1", origin("http://locks.example.com"), 1},
		{"a proxy with TLS that says nothing", "127.0.0.1:1", origin("https://locks.example.com"), 0},
		{"no browser, and maybe a proxy", "127.0.0.1:1", func(*http.Request) {}, 1},
		{"a proxy by a socket", "@", func(r *http.Request) { overUnix(r); origin("http://locks.example.com")(r) }, 1},
		{"another host", "192.0.2.7:1", func(*http.Request) {}, 1},
		{"TLS", "192.0.2.7:1", func(r *http.Request) { r.TLS = &tls.ConnectionState{} }, 0},
		{"a proxy", "127.0.0.1:1", func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.7") }, 1},
		{"a proxy with TLS", "127.0.0.1:1", func(r *http.Request) {
			r.Header.Set("X-Forwarded-For", "192.0.2.7")
			r.Header.Set("X-Forwarded-Proto", "https")
		}, 0},
		{"a socket", "@", overUnix, 0},
	} {
		s, log := open(t, server.Options{Callers: sourceFunc(identify)})
		for range 3 {
			r := (&site{}).request(t.Context(), "", "POST", "/v1/session", `{"token":"ci"}`)
			r.RemoteAddr = c.from
			c.change(r)
			w := httptest.NewRecorder()
			if s.ServeHTTP(w, r); w.Code != http.StatusNoContent {
				t.Errorf("%s: %d %s", c.what, w.Code, w.Body)
			}
		}
		if n := strings.Count(log.String(), "plain HTTP"); n != c.warned || strings.Count(log.String(), "what=sign-in caller=ci") != 3 {
			t.Errorf("%s: %d warnings, want %d\n%s", c.what, n, c.warned, log)
		}
	}
}
