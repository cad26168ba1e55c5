package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/dashboard"
)

// bad is a bad request, and the reply to it.
type bad struct {
	method, target, body string
	header               []string // names and values
	status               int
	code                 string // of the problem; empty if the reply need not be a problem
}

const breakPath = "/v1/locks/orders%2F42/break"

// badRequests returns requests that are wrong even if the handler allows every action. TOKEN stands
// for the fencing token of orders/42.
func badRequests() []bad {
	json := []string{"Content-Type", "application/json"}
	with := func(header ...string) []string { return append(append([]string{}, json...), header...) }
	long := strings.Repeat("a", 20<<10)
	breaking := `{"fencing_token": TOKEN, "reason": "r"}`
	return []bad{
		// Methods.
		{"POST", "/", "", nil, 405, "method-not-allowed"},
		{"DELETE", "/main.js", "", nil, 405, "method-not-allowed"},
		{"PUT", "/index.html", "x", nil, 405, "method-not-allowed"},
		{"OPTIONS", "/", "", nil, 405, "method-not-allowed"},
		{"TRACE", "/main.js", "", nil, 405, "method-not-allowed"},
		{"BREW", "/page.css", "", nil, 405, "method-not-allowed"},
		{"POST", "/v1/locks", "{}", json, 405, "method-not-allowed"},
		{"DELETE", "/v1/locks/orders%2F42", "", nil, 405, "method-not-allowed"},
		{"PATCH", "/v1/locks/orders%2F42", "{}", json, 405, "method-not-allowed"},
		{"GET", breakPath, "", nil, 405, "method-not-allowed"},
		{"PUT", breakPath, breaking, json, 405, "method-not-allowed"},
		{"HEAD", "/v1/locks", "", nil, 405, "method-not-allowed"},
		{"GET", "/v1/locks/look", "", nil, 200, ""}, // the lock with the name look
		{"POST", "/v1/events", "{}", json, 405, "method-not-allowed"},
		{"OPTIONS", "/v1/locks", "", with("Access-Control-Request-Method", "DELETE"), 405, "method-not-allowed"},
		{"POST", "/status.json?name=orders%2F42", "", nil, 405, "method-not-allowed"},
		{"CONNECT", "/v1/locks", "", nil, 405, "method-not-allowed"},

		// Paths.
		{"GET", "/../etc/passwd", "", nil, 404, "not-found"},
		{"GET", "/%2e%2e/%2e%2e/etc/passwd", "", nil, 404, "not-found"},
		{"GET", "/vendor/../main.js", "", nil, 404, "not-found"},
		{"GET", "/./main.js", "", nil, 404, "not-found"},
		{"GET", "//main.js", "", nil, 404, "not-found"},
		{"GET", "//example.com/", "", nil, 404, "not-found"},
		{"GET", "/vendor", "", nil, 404, "not-found"},
		{"GET", "/vendor/", "", nil, 404, "not-found"},
		{"GET", "/main.js/", "", nil, 404, "not-found"},
		{"GET", "/main.js%00", "", nil, 404, "not-found"},
		{"GET", "/vendor%5cpreact.js", "", nil, 404, "not-found"},
		{"GET", "/web/main.js", "", nil, 404, "not-found"},
		{"GET", "/dashboard.go", "", nil, 404, "not-found"},
		{"GET", "/MAIN.JS", "", nil, 404, "not-found"},
		{"GET", "/v1", "", nil, 404, "not-found"},
		{"GET", "/v1/", "", nil, 404, "not-found"},
		{"GET", "/v2/locks", "", nil, 404, "not-found"},
		{"GET", "/v1/locks/", "", nil, 404, "not-found"},
		{"GET", "/v1//locks", "", nil, 404, "not-found"},
		{"GET", "/v1/./locks", "", nil, 404, "not-found"},
		{"GET", "/v1/locks/..", "", nil, 404, "not-found"},
		{"GET", "/v1/locks/orders/42", "", nil, 404, "not-found"},
		{"GET", "/v1/locks/a%00b", "", nil, 400, "invalid"},
		{"GET", "/v1/locks/%ff", "", nil, 400, "invalid"},
		{"GET", "/v1/locks/" + strings.Repeat("a", 600), "", nil, 400, "invalid"},
		{"GET", "/v1/locks/holdfast%40server%2Fsecret", "", nil, 403, "reserved-name"},
		{"POST", "/v1/locks/..%2f..%2fv1%2fleases/break", breaking, json, 410, "not-held"},
		{"POST", "/v1/locks/orders%2F42/../a/break", breaking, json, 404, "not-found"},
		{"POST", "/v1/locks/a%00b/break", breaking, json, 400, "invalid"},
		{"POST", "/v1/locks/~/break?name=a&name=orders%2F42", breaking, json, 400, "invalid"},
		{"POST", "/v1/locks/~/break?name=%00", breaking, json, 400, "invalid"},
		{"POST", "/v1/locks/~/break?name=;orders%2F42", breaking, json, 400, "invalid"},
		{"POST", "/v1/locks/~/break?name=holdfast%40server%2Fsecret", breaking, json, 403, "reserved-name"},
		{"DELETE", "/v1/once/", "", nil, 404, "not-found"},
		{"DELETE", "/v1/once/nobody", "", nil, 404, "no-result"},

		// Origins and cookies.
		{"POST", breakPath, breaking, with("Origin", "https://evil.example"), 403, "cross-site"},
		{"POST", breakPath, breaking, with("Origin", "null"), 403, "cross-site"},
		{"POST", breakPath, breaking, with("Sec-Fetch-Site", "cross-site"), 403, "cross-site"},
		{"POST", breakPath, breaking, with("Sec-Fetch-Site", "same-site", "Cookie", "holdfast_session=x"), 403, "cross-site"},
		{"DELETE", "/v1/once/mail%2F7", "", []string{"Sec-Fetch-Site", "cross-site"}, 403, "cross-site"},
		{"POST", "/v1/locks/look", `{"names": ["a"]}`, with("Origin", "https://evil.example"), 403, "cross-site"},
		{"GET", "/v1/locks", "", []string{"Cookie", "holdfast_session=" + strings.Repeat("x", 4000)}, 200, ""},
		{"GET", "/v1/locks", "", []string{"Cookie", "holdfast_session=\x01; ==;;"}, 200, ""},
		{"POST", "/v1/session", `{"token": "x"}`, json, 405, "method-not-allowed"},
		{"DELETE", "/v1/session", "", nil, 405, "method-not-allowed"},

		// Queries.
		{"GET", "/v1/locks?prefix=" + strings.Repeat("a", 600), "", nil, 400, "invalid"},
		{"GET", "/v1/locks?prefix=" + long, "", nil, 431, "header-too-large"},
		{"GET", "/v1/locks?limit=0", "", nil, 400, "invalid"},
		{"GET", "/v1/locks?limit=99999999999999999999", "", nil, 400, "invalid"},
		{"GET", "/v1/locks?cursor=%21", "", nil, 400, "invalid"},
		{"GET", "/v1/locks?cursor=" + strings.Repeat("_", 8<<10), "", nil, 200, ""},
		{"GET", "/v1/events?prefix=a&prefix=b", "", nil, 400, "invalid"},
		{"GET", "/v1/events?name=a", "", nil, 400, "invalid"},
		{"GET", "/v1/events?prefix=%zz", "", nil, 400, "invalid"},
		{"GET", "/v1/once?limit=x", "", nil, 400, "invalid"},
		{"GET", "/status.json", "", nil, 400, "invalid"},
		{"GET", "/status.json?name=%00", "", nil, 400, "invalid"},
		{"GET", "/status.json?name=" + long, "", nil, 400, "invalid"},
		{"GET", "/?" + long, "", nil, 200, ""},

		// Bodies.
		{"POST", breakPath, breaking, nil, 415, "not-json"},
		{"POST", breakPath, breaking, []string{"Content-Type", "text/plain"}, 415, "not-json"},
		{"POST", breakPath, breaking, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "not-json"},
		{"POST", breakPath, "", json, 400, "malformed-json"},
		{"POST", breakPath, "{", json, 400, "malformed-json"},
		{"POST", breakPath, "[]", json, 400, "malformed-json"},
		{"POST", breakPath, breaking + "{}", json, 400, "malformed-json"},
		{"POST", breakPath, `{"fencing_token": 1, "fencing_token": TOKEN, "reason": "r"}`, json, 400, "malformed-json"},
		{"POST", breakPath, `{"fencing_token": 1, "Fencing_Token": TOKEN, "reason": "r"}`, json, 400, "malformed-json"},
		{"POST", breakPath, `{"fencing_token": "TOKEN"}`, json, 400, "malformed-json"},
		{"POST", breakPath, `{"fencing_token": -1}`, json, 400, "malformed-json"},
		{"POST", breakPath, `{"fencing_token": 1e30}`, json, 400, "malformed-json"},
		{"POST", breakPath, `{"fencing_token": TOKEN, "reason": 7}`, json, 400, "malformed-json"},
		{"POST", breakPath, `{"fencing_token": TOKEN, "older": true}`, json, 403, "not-permitted"},
		{"POST", breakPath, `{"fencing_token": TOKEN, "other": true}`, json, 400, "malformed-json"},
		{"POST", breakPath, `{"fencing_token": TOKEN, "reason": "a\u0000b"}`, json, 400, "invalid"},
		{"POST", breakPath, `{"fencing_token": TOKEN, "reason": "` + strings.Repeat("r", 4000) + `"}`, json, 400, "invalid"},
		{"POST", breakPath, `{"fencing_token": 0}`, json, 400, "invalid"},
		{"POST", breakPath, `{}`, json, 400, "invalid"},
		{"POST", breakPath, `{"fencing_token": 1, "reason": "another lease"}`, json, 410, "not-held"},
		{"POST", breakPath, `{"reason": "` + strings.Repeat("r", 200<<10) + `"}`, json, 413, "body-too-large"},
		{"POST", breakPath, strings.Repeat("[", 100<<10), json, 400, "malformed-json"},
		{"POST", "/v1/locks/a/hold", `{"for_ms": 60000}`, json, 400, "invalid"},
		{"POST", "/v1/locks/a/hold", `{"for_ms": -1, "reason": "r"}`, json, 400, "invalid"},
		{"POST", "/v1/locks/a/hold", `{"for_ms": 60000, "reason": "r", "holder": {"host": "h"}}`, json, 400, "malformed-json"},
		{"POST", "/v1/locks/orders%2F42/hold/release", `{"fencing_token": TOKEN}`, json, 409, "not-a-person"},
		{"POST", "/v1/locks/look", `{"names": []}`, json, 400, "invalid"},
		{"POST", "/v1/locks/look", `{"names": ["` + strings.Repeat("a", 600) + `"]}`, json, 400, "invalid"},
		{"POST", "/v1/locks/look", `{"names": [` + strings.Repeat(`"a",`, 200) + `"a"]}`, json, 400, "invalid"},
	}
}

// TestBadRequests checks that each bad request gets the right status and changes nothing.
func TestBadRequests(t *testing.T) {
	s := newSite(t, dashboard.Options{Authorize: func(*http.Request, dashboard.Action) error { return nil }})
	s.remember(t, "mail/7")
	before, all := s.state(t), badRequests()
	if len(all) < 60 {
		t.Errorf("only %d requests", len(all))
	}
	for _, prefix := range []string{"", "/ops/locks"} {
		h := http.StripPrefix(prefix, s)
		for _, b := range all {
			body := strings.ReplaceAll(b.body, "TOKEN", fmt.Sprint(s.token))
			r, err := http.NewRequest(b.method, "http://locks.example"+prefix+b.target, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:1234"
			for i := 0; i < len(b.header); i += 2 {
				r.Header.Add(b.header[i], b.header[i+1])
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			what := fmt.Sprintf("%s %s%.80s %.80s %.80q", b.method, prefix, b.target, body, b.header)
			if w.Code != b.status || b.code != "" && !strings.Contains(w.Body.String(), `"code":"`+b.code+`"`) {
				t.Errorf("%s: %d %.300s, want %d %s", what, w.Code, w.Body, b.status, b.code)
			}
			if w.Code >= 400 && w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: a refusal as %s", what, w.Header().Get("Content-Type"))
			}
			if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Location") != "" {
				t.Errorf("%s: %s", what, w.Header())
			}
			if after := s.state(t); after != before {
				t.Fatalf("%s has changed\n%s\nto\n%s", what, before, after)
			}
		}
	}
	t.Logf("%d requests, at two places", len(all))
}
