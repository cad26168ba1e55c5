package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/dashboard"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// state returns all that is in the store of a site, without times.
func (s *site) state(t *testing.T) string {
	t.Helper()
	var all []string
	for lock, err := range s.engine.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		lock, err = s.engine.Inspect(t.Context(), lock.Name)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprint(lock.Name, " ", lock.LastToken)
		for _, h := range lock.Holders {
			line += fmt.Sprint(" ", h.LeaseID, h.Token, h.Holder, h.Released)
		}
		for _, p := range lock.Queue {
			line += fmt.Sprint(" ", p.LeaseID, p.Holder)
		}
		broken, err := s.engine.Breaks(t.Context(), lock.Name)
		all = append(all, line, fmt.Sprint(len(broken), err))
	}
	for record, err := range s.engine.ListRecords(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, "record "+record.Name)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// remember stores the result of do-once work.
func (s *site) remember(t *testing.T, key string) {
	t.Helper()
	id := lockinfo.NewLeaseID()
	_, err1 := s.engine.Acquire(t.Context(), driver.AcquireRequest{Name: key, LeaseID: id, TTL: time.Hour, Once: true})
	err2 := s.engine.Complete(t.Context(), driver.CompleteRequest{Name: key, LeaseID: id, Record: []byte("1"), Retention: time.Hour})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
}

// act sends an action as the page does.
func act(h http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Idempotency-Key", "0123456789abcdef0123")
	return send(h, r, header...)
}

// TestActions checks that the page carries out the actions that Authorize allows and no others,
// with the author that Viewer returns. Authorize gets the action that is carried out, whether the
// name is in the path or in the query.
func TestActions(t *testing.T) {
	var asked []dashboard.Action
	allow := error(nil)
	s := newSite(t, dashboard.Options{
		Viewer:    func(r *http.Request) string { return r.Header.Get("X-User") },
		Authorize: func(_ *http.Request, a dashboard.Action) error { asked = append(asked, a); return allow },
	})
	s.remember(t, "mail/7")
	before := s.state(t)
	breaking := fmt.Sprintf(`{"fencing_token": %d, "reason": "its host is gone"}`, s.token)
	token := func(name string) uint64 {
		l, err := s.engine.Inspect(t.Context(), name)
		if err != nil || len(l.Holders) == 0 {
			t.Fatalf("nobody has %s: %v", name, err)
		}
		return l.Holders[0].Token
	}

	allow = errors.New("ask ann first")
	for _, c := range []struct{ method, target, body string }{
		{"POST", "/v1/locks/orders%2F42/break", breaking},
		{"POST", "/v1/locks/~/break?name=orders%2F42", breaking},
		{"POST", "/v1/locks/deploy/hold", `{"for_ms": 60000, "reason": "freeze"}`},
		{"POST", "/v1/locks/orders%2F42/hold/release", fmt.Sprintf(`{"fencing_token": %d}`, s.token)},
		{"DELETE", "/v1/once/mail%2F7", ""},
	} {
		asked = nil
		w := act(s, c.method, c.target, c.body)
		var p struct{ Code, Detail string }
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 403 || p.Code != "not-permitted" || p.Detail != "ask ann first" || len(asked) != 1 {
			t.Errorf("%s %s: %d %s, asked %d times", c.method, c.target, w.Code, w.Body, len(asked))
		}
	}
	if after := s.state(t); after != before {
		t.Fatalf("what was refused has been done:\n%s\n%s", before, after)
	}

	allow, asked = nil, nil
	if w := act(s, "POST", "/v1/locks/~/break?name=orders%2F42", breaking, "X-User", "ann"); w.Code != 200 || !strings.Contains(w.Body.String(), `"author":"ann"`) {
		t.Fatalf("break: %d %s", w.Code, w.Body)
	}
	if w := act(s, "POST", "/v1/locks/deploy/hold", `{"for_ms": 60000, "reason": "freeze"}`, "X-User", "ann"); w.Code != 201 {
		t.Fatalf("hold: %d %s", w.Code, w.Body)
	}
	held := token("deploy")
	if w := act(s, "POST", "/v1/locks/~/hold/release?name=deploy", fmt.Sprintf(`{"fencing_token": %d}`, held), "X-User", "ann"); w.Code != 204 {
		t.Fatalf("release: %d %s", w.Code, w.Body)
	}
	if w := act(s, "DELETE", "/v1/once/~?name=mail%2F7", ""); w.Code != 204 {
		t.Fatalf("forget: %d %s", w.Code, w.Body)
	}
	want := []dashboard.Action{
		{Kind: dashboard.Break, Name: "orders/42", Token: s.token, Reason: "its host is gone"},
		{Kind: dashboard.Hold, Name: "deploy", Reason: "freeze"},
		{Kind: dashboard.Release, Name: "deploy", Token: held},
		{Kind: dashboard.Forget, Name: "mail/7"},
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked about\n%+v, want\n%+v", asked, want)
	}
}

// TestLookingOnly checks that without Authorize the page refuses actions, and that reading
// everything changes nothing.
func TestLookingOnly(t *testing.T) {
	s := newSite(t, dashboard.Options{})
	s.remember(t, "mail/7")
	before := s.state(t)
	for _, target := range []string{
		"/", "/v1/locks", "/v1/locks/orders%2F42", "/v1/locks/orders%2F42/history", "/v1/locks/~?name=orders%2F42",
		"/v1/once", "/v1/onetime", "/v1/stats", "/v1/store", "/v1/session", "/status.json?name=orders%2F42",
	} {
		if w := ask(s, "GET", target); w.Code != 200 {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	if w := act(s, "POST", "/v1/locks/look", `{"names": ["orders/42", "nobody"]}`); w.Code != 200 {
		t.Errorf("look: %d %s", w.Code, w.Body)
	}
	if w := act(s, "POST", "/v1/locks/orders%2F42/break", fmt.Sprintf(`{"fencing_token": %d}`, s.token)); w.Code != 403 || !strings.Contains(w.Body.String(), "for looking only") {
		t.Errorf("break: %d %s", w.Code, w.Body)
	}
	if after := s.state(t); after != before {
		t.Errorf("looking has changed\n%s\nto\n%s", before, after)
	}
}

// TestEventsUntilClosed checks that the page receives events, and that Close ends the stream.
func TestEventsUntilClosed(t *testing.T) {
	s := newSite(t, dashboard.Options{})
	srv := httptest.NewServer(http.StripPrefix("/ops/locks", s))
	defer srv.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/ops/locks/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("%d %s", answer.StatusCode, kind)
	}
	if _, err := s.engine.Acquire(t.Context(), driver.AcquireRequest{Name: "news", LeaseID: lockinfo.NewLeaseID(), TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	var heard strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(heard.String(), `"name":"news"`) {
		n, err := answer.Body.Read(buffer)
		heard.Write(buffer[:n])
		if err != nil {
			t.Fatalf("%v after %s", err, &heard)
		}
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = answer.Body.Read(buffer) // ends with the stream
	}
}
