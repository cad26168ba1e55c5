package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// inSite runs a test on a new site in virtual time.
func inSite(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		defer func() {
			if err := s.close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, s)
	})
}

// TestNothingSecretIsLogged checks that no line of the log contains a lease ID, a token, a key or a
// payload. The log contains refusals and breaks.
func TestNothingSecretIsLogged(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		const payload, key = "marker-of-a-payload", "marker-of-an-idempotency-key"
		marked := strings.NewReplacer(`"payload":"x"`, `"payload":"`+payload+`"`, `"token":"x"`, `"token":"`+payload+`"`, `{"a":1}`, `{"a":"`+payload+`"}`, `"fingerprint":"x"`, `"fingerprint":"`+payload+`"`)
		for _, e := range endpoints {
			for _, who := range []string{bearer, "ci", "", payload} {
				for _, body := range []string{marked.Replace(e.body), strings.Replace(marked.Replace(e.body), "{", `{"`+payload+`":1,`, 1)} {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends streams
					r := s.request(ctx, who, e.method(), e.path(), body)
					r.Header.Set("Idempotency-Key", key)
					s.send(r)
					cancel()
				}
			}
		}
		b := &browser{T: t, handler: s}
		b.signIn(bearer)
		cookie := b.cookie
		for _, e := range endpoints {
			for _, value := range []string{cookie.Value, cookie.Value + payload, payload} {
				for _, origin := range []string{"", "http://127.0.0.1:7420", "http://" + payload} {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends streams
					r := s.request(ctx, "", e.method(), e.path(), e.body)
					r.Host = "127.0.0.1:7420"
					r.Header.Set("Origin", origin)
					r.AddCookie(&http.Cookie{Name: cookie.Name, Value: value})
					s.send(r)
					cancel()
				}
			}
		}
		log := s.log.String()
		for _, secret := range []string{cookie.Value, string(s.held), string(s.queued), strings.Trim(other, `"`), bearer, payload, key} {
			for line := range strings.Lines(log) {
				if strings.Contains(line, secret) {
					t.Errorf("%q is logged: %s", secret, line)
				}
			}
		}
		for _, line := range []string{
			"what=refused caller=ci", `request="POST /v1/leases"`, "not-permitted",
			`what=refused caller=""`, "not-authenticated",
			"what=break caller=all", "name=bank/held",
			"what=sign-in caller=all", "session-over", "cross-site",
		} {
			if !strings.Contains(log, line) {
				t.Errorf("%q is not in the log", line)
			}
		}
	})
}

// TestLeaseIDsOfOthers checks that a caller without the admin right sees hidden lease IDs only.
func TestLeaseIDsOfOthers(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		hidden, shown := 0, 0
		for _, e := range endpoints {
			if strings.Contains(e.body, leaseOf) || e.about == stream || e.about == streamOf || strings.HasSuffix(e.pattern, "break") {
				continue // the caller has the ID, or the reply is a stream, or the lease ends
			}
			text := s.send(s.request(t.Context(), "plain", e.method(), e.path(), e.body)).Body.String()
			for _, id := range []lockinfo.LeaseID{s.held, s.queued} {
				if strings.Contains(text, string(id)) {
					t.Errorf("%s shows a lease ID: %s", e.pattern, text)
				}
				hidden += strings.Count(text, string(id.Hidden()))
			}
			text = s.send(s.request(t.Context(), "all", e.method(), e.path(), e.body)).Body.String()
			shown += strings.Count(text, string(s.held))
		}
		if hidden < 4 || shown < 2 {
			t.Errorf("%d lease IDs are hidden and %d shown, want those of inspect and list", hidden, shown)
		}
	})
}

// TestLimitsAreKept checks that a caller at its limit is refused at both interfaces, and that
// another caller is not.
func TestLimitsAreKept(t *testing.T) {
	const body = `{"name":"ci/NAME","lease_id":"0123456789abcdef0123456789abcNAME","ttl_ns":60000000000,"holder":{}}`
	s, _ := open(t, server.Options{Callers: sourceFunc(identify), Limits: server.Limits{Leases: 2}})
	site := &site{Handler: s}
	take := func(who, name string, status int, code string) {
		t.Helper()
		w := site.send(site.request(t.Context(), who, http.MethodPost, "/v1/driver/acquire", strings.ReplaceAll(body, "NAME", name)))
		if status != http.StatusOK {
			wantProblem(t, w, status, code)
			if w.Header().Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		} else if w.Code != status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	release := func(name string) {
		t.Helper()
		text := strings.ReplaceAll(`{"name":"ci/NAME","lease_id":"0123456789abcdef0123456789abcNAME"}`, "NAME", name)
		if w := site.send(site.request(t.Context(), "ci", http.MethodPost, "/v1/driver/release", text)); w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	take("all", "001", http.StatusOK, "")
	take("ci", "002", http.StatusOK, "")
	take("ci", "002", http.StatusOK, "") // a repeat: still one lease
	for range 3 {
		held := strings.Replace(body, "ci/NAME", "ci/001", 1)
		site.send(site.request(t.Context(), "ci", http.MethodPost, "/v1/driver/acquire", strings.ReplaceAll(held, "NAME", "009"))) // not granted
	}
	take("ci", "003", http.StatusOK, "")
	take("ci", "004", http.StatusTooManyRequests, "too-many-leases")
	people := site.request(t.Context(), "ci", http.MethodPost, "/v1/leases", `{"name":"ci/005"}`)
	wantProblem(t, site.send(people), http.StatusTooManyRequests, "too-many-leases")
	take("all", "006", http.StatusOK, "")
	release("002")
	take("ci", "004", http.StatusOK, "")
}

// TestKeptIsBounded checks that the bytes that one caller keeps in the store have a bound for both
// interfaces together, which other callers do not share. Work is refused before it begins, not when
// it completes, and the result of done work is replayed.
func TestKeptIsBounded(t *testing.T) {
	s, _ := open(t, server.Options{Callers: sourceFunc(identify), Limits: server.Limits{Kept: 6000}})
	site := &site{Handler: s}
	send := func(who, target, body string) *httptest.ResponseRecorder {
		t.Helper()
		return site.send(site.request(t.Context(), who, http.MethodPost, target, body))
	}
	want := func(w *httptest.ResponseRecorder, status int) {
		t.Helper()
		if w.Code != status {
			t.Errorf("%d %s, want %d", w.Code, w.Body, status)
		}
	}
	payload := strings.Repeat("x", 2000)
	issue := `{"payload":"` + payload + `","ttl_ms":60000}`
	want(send("ci", "/v1/once/ci%2Fdone", `{"ttl_ms":60000}`), http.StatusCreated)
	var id struct {
		LeaseID string `json:"lease_id"`
	}
	w := send("ci", "/v1/once/ci%2Frun", `{"ttl_ms":60000,"fingerprint":"one"}`)
	if err := json.Unmarshal(w.Body.Bytes(), &id); err != nil {
		t.Fatal(err, w.Body)
	}
	var token struct{ Token string }
	for range 2 {
		w := send("ci", "/v1/onetime", issue)
		want(w, http.StatusCreated)
		if err := json.Unmarshal(w.Body.Bytes(), &token); err != nil {
			t.Fatal(err)
		}
	}
	wantProblem(t, send("ci", "/v1/onetime", issue), http.StatusTooManyRequests, "too-much-kept")
	wantProblem(t, send("ci", "/v1/driver/deposit", `{`+digest+`,"by":`+other+`,"payload":"`+payload+`","ttl_ns":60000000000,"memory_ns":120000000000}`), http.StatusTooManyRequests, "too-much-kept")
	want(send("plain", "/v1/onetime", issue), http.StatusCreated)
	r := site.request(t.Context(), "ci", http.MethodPut, "/v1/once/ci%2Frun/result", `{"lease_id":"`+id.LeaseID+`","result":"`+payload+`","retention_ms":60000}`)
	want(site.send(r), http.StatusNoContent) // the work is done
	wantProblem(t, send("ci", "/v1/once/ci%2Fnext", `{"ttl_ms":60000}`), http.StatusTooManyRequests, "too-much-kept")
	want(send("ci", "/v1/once/ci%2Frun", `{"fingerprint":"one"}`), http.StatusOK)
	again := send("ci", "/v1/driver/acquire", `{"name":"ci/run","lease_id":`+other+`,"ttl_ns":60000000000,"once":true,"holder":{}}`)
	if want(again, http.StatusOK); !strings.Contains(again.Body.String(), `"outcome":"recorded"`) {
		t.Errorf("done work: %.200s, want Recorded", again.Body)
	}
	wantProblem(t, send("ci", "/v1/once/ci%2Frun", `{"fingerprint":"another"}`), http.StatusUnprocessableEntity, "key-reused")
	wantProblem(t, send("ci", "/v1/driver/acquire", `{"name":"ci/engine","lease_id":`+other+`,"ttl_ns":60000000000,"once":true,"holder":{}}`), http.StatusTooManyRequests, "too-much-kept")
	want(site.send(site.request(t.Context(), "ci", http.MethodDelete, "/v1/once/ci%2Frun", "")), http.StatusNoContent)
	want(send("ci", "/v1/once/ci%2Fnext", `{"ttl_ms":60000}`), http.StatusCreated)
	wantProblem(t, send("ci", "/v1/onetime", issue), http.StatusTooManyRequests, "too-much-kept")
	want(send("plain", "/v1/onetime/redeem", `{"token":"`+token.Token+`"}`), http.StatusOK)
	want(send("ci", "/v1/onetime", issue), http.StatusCreated)
}
