package server_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestSessionUnderAPrefix checks that behind a proxy with a path prefix, a cookie jar sends the
// cookie to the server's paths, and to no other path of the host.
func TestSessionUnderAPrefix(t *testing.T) {
	engine := mem.New(nil)
	s, err := server.New(engine, &server.Options{Callers: sourceFunc(identify)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	cookies := map[string]bool{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookies[r.URL.Path] = r.Header.Get("Cookie") != ""
		http.StripPrefix("/ops/locks", s).ServeHTTP(w, r)
	}))
	defer web.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	send := func(method, path, body string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", web.URL)
		w, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		return w.StatusCode
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		cookie             bool
	}{
		{"POST", "/ops/locks/v1/session", `{"token":"all"}`, 204, false},
		{"GET", "/ops/locks/v1/session", "", 200, true},
		{"POST", "/ops/locks/v1/locks/a/break", `{"fencing_token":1}`, 410, true},
		{"GET", "/ops/locks/openapi.json", "", 401, false},
		{"GET", "/ops/other", "", 404, false},
		{"GET", "/v1/locks", "", 404, false},
		{"DELETE", "/ops/locks/v1/session", "", 204, true},
		{"GET", "/ops/locks/v1/locks", "", 401, false},
	} {
		if status := send(c.method, c.path, c.body); status != c.status || cookies[c.path] != c.cookie {
			t.Errorf("%s %s: %d, with a cookie: %t; want %d, %t", c.method, c.path, status, cookies[c.path], c.status, c.cookie)
		}
	}
	at, err := url.Parse(web.URL + "/ops/locks/v1/")
	if err != nil {
		t.Fatal(err)
	}
	if left := jar.Cookies(at); len(left) > 0 {
		t.Errorf("after signing out there is %v", left)
	}
}
