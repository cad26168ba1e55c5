package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A bad request is refused, and changes nothing.
type bad struct {
	who    string // a token; "" sends none
	method string
	target string
	header string // "Name: value" replaces the usual header; "Name:" removes it
	body   string
	status int
	code   string
}

func (b bad) String() string {
	return strings.Join([]string{b.who, b.method, b.target, b.header, b.body[:min(len(b.body), 200)]}, " | ")
}

// everywhere returns the wrong requests that every endpoint must refuse.
func everywhere(e endpoint) []bad {
	to := func(who, method, header, body string, status int, code string) bad {
		return bad{who, method, e.path(), header, body, status, code}
	}
	all := []bad{
		to("all", e.method(), "X-Filler: "+strings.Repeat("x", 17<<10), e.body, 431, "header-too-large"),
		to("all", "PATCH", "", e.body, 405, "method-not-allowed"),
		to("all", "HEAD", "", "", 405, "method-not-allowed"),
		to("all", "OPTIONS", "", "", 405, "method-not-allowed"),
	}
	if e.about != anybody {
		all = append(all,
			to("", e.method(), "", e.body, 401, "not-authenticated"),
			to("wrong", e.method(), "", e.body, 401, "not-authenticated"),
			to("all", e.method(), "Authorization: Basic YWxsOmFsbA==", e.body, 401, "not-authenticated"),
		)
	}
	all = append(all, to("all", e.method(), "Sec-Fetch-Site: cross-site", e.body, 403, "cross-site"))
	if e.about == name || e.about == streamOf {
		all = append(all, to("ci", e.method(), "", e.body, 403, "not-permitted"))
		if strings.Contains(e.body+e.target, "bank/held") || strings.Contains(e.target, "bank%2F") {
			reserved := e
			reserved.body = strings.NewReplacer("bank/held", "holdfast@server/secret").Replace(e.body)
			reserved.target = strings.NewReplacer("bank%2Fheld", "holdfast@server%2Fsecret", "bank%2Fdone", "holdfast@server%2Fsecret").Replace(e.path())
			all = append(all, bad{"all", e.method(), reserved.target, "", reserved.body, 403, "reserved-name"})
		}
	}
	if e.right != 0 {
		all = append(all, to(without(e.right), e.method(), "", e.body, 403, "not-permitted"))
	}
	if e.body == "" {
		return all
	}
	all = append(all,
		to("all", e.method(), "Content-Type: text/plain", e.body, 415, "not-json"),
		to("all", e.method(), "Content-Type: application/x-www-form-urlencoded", e.body, 415, "not-json"),
		to("all", e.method(), "Content-Type:", e.body, 415, "not-json"),
	)
	for _, body := range []string{
		" ", "{", "[]", "null", "true", `"x"`, "{}{}", e.body + "x", e.body[:len(e.body)-1], `{"unknown":1}`, `{"unknown":1,` + e.body[1:],
		"\xff", strings.Repeat("[", 40), strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), "\ufeff" + e.body,
	} {
		all = append(all, to("all", e.method(), "", body, 400, "malformed-json"))
	}
	if field, rest, ok := strings.Cut(e.body[1:], ":"); ok { // the first field twice, and in capitals
		all = append(all,
			to("all", e.method(), "", "{"+strings.ToUpper(field)+":"+rest, 400, "malformed-json"),
			to("all", e.method(), "", "{"+field+":"+strings.TrimSuffix(rest, "}")+","+e.body[1:], 400, "malformed-json"),
		)
	}
	return all
}

// TestBadRequests checks that each bad request is refused with the right code, and that it changes
// nothing in the store.
func TestBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		defer func() {
			if err := s.close(); err != nil {
				t.Error(err)
			}
		}()
		all := badRequests
		if len(all) < 80 {
			t.Errorf("%d bad requests in the table, want 80", len(all))
		}
		for _, e := range endpoints {
			all = append(all, everywhere(e)...)
		}
		before := s.state(t)
		for _, b := range all {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends a stream that was admitted
			r := s.request(ctx, b.who, b.method, b.target, b.body)
			if name, value, ok := strings.Cut(b.header, ":"); ok {
				r.Header.Del(name)
				if value = strings.TrimSpace(value); value != "" {
					r.Header.Set(name, value)
				}
			}
			w := s.send(r)
			cancel()
			if p := wantProblem(t, w, b.status, b.code); p.Code != b.code || p.Status != b.status {
				t.Log(b)
			}
			if allow := w.Header().Get("Allow"); (b.status == http.StatusMethodNotAllowed) != (allow != "") {
				t.Errorf("Allow: %q", allow)
			}
			if again := w.Header().Get("Retry-After"); (b.status == http.StatusTooManyRequests || b.status == http.StatusServiceUnavailable) && again == "" {
				t.Error("no Retry-After")
			}
			if after := s.state(t); after != before {
				t.Errorf("%s\nhas changed\n%s\ninto\n%s", b, before, after)
				before = after
			}
		}
		t.Logf("%d bad requests", len(all))
	})
}
