package server_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// whoever are the tokens of the callers that send the fuzzed requests.
var whoever = []string{"all", "plain", "ci", "", "wrong"}

// fuzzed are the headers that the server reads.
var fuzzed = []string{
	"Idempotency-Key", "Content-Type", "Holdfast-Timeout-Ms", "Holdfast-Client", "Last-Event-Id", "Accept", "Authorization",
	"Host", "Origin", "Sec-Fetch-Site", "X-Forwarded-For", "Fencing-Token", "Prefer", "Cookie", "X-Forwarded-Proto",
}

// FuzzRequest checks that the server replies to every request without a fault of its own. A refusal
// has a code, and a request that is wrong in itself changes nothing.
func FuzzRequest(f *testing.F) {
	for n, e := range endpoints {
		f.Add(uint8(n), uint8(0), e.path(), uint8(0), "0123456789-0123456789", e.body)
		f.Add(uint8(n), uint8(n), e.path(), uint8(n), "x", e.body)
	}
	for _, b := range badRequests {
		for n, e := range endpoints {
			if e.path() == b.target && e.method() == b.method {
				f.Add(uint8(n), uint8(0), b.target, uint8(0), "0123456789-0123456789", b.body)
			}
		}
	}
	f.Add(uint8(0), uint8(0), "/v1/leases?hold=1", uint8(0), "0123456789-0123456789", `{"name":"bank/new","ttl_ms":1000,"wait_ms":1000}`)
	f.Add(uint8(0), uint8(0), "/v1/leases?hold=1&direct=1&renew=client", uint8(2), "1", `{"name":"bank/held"}`)
	for n, e := range endpoints {
		f.Add(uint8(n), uint8(3), e.path(), uint8(13), "holdfast_session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", e.body)
	}
	f.Fuzz(func(t *testing.T, which, who uint8, target string, header uint8, value, body string) {
		at, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(target, "/") {
			return // net/http does not accept it
		}
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			defer func() {
				if err := s.close(); err != nil {
					t.Error(err)
				}
			}()
			e, before := endpoints[int(which)%len(endpoints)], s.state(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // ends streams
			defer cancel()
			r := s.request(ctx, whoever[int(who)%len(whoever)], e.method(), "/", body)
			r.URL, r.RequestURI = at, target
			r.Header.Set(fuzzed[int(header)%len(fuzzed)], value)
			w := s.send(r)
			text := func() string { return e.method() + " " + target + "\n" + body + "\n" + w.Body.String() }
			switch {
			case w.Code == http.StatusInternalServerError:
				t.Errorf("a fault of the server: %s\n%s", text(), s.log)
			case w.Code >= http.StatusBadRequest:
				if p := wantProblem(t, w, w.Code, problemCode(w.Body.Bytes())); p.Code == "" {
					t.Errorf("no code: %s", text())
				}
				if w.Code < http.StatusConflict || w.Code > http.StatusGone {
					if after := s.state(t); after != before {
						t.Errorf("it is refused, and has changed\n%s\ninto\n%s\n%s", before, after, text())
					}
				}
			case !utf8.Valid(w.Body.Bytes()):
				t.Errorf("the answer is not UTF-8: %s", text())
			}
		})
	})
}
