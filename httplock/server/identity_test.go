package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// claims are false values that a caller may send about itself, by the fields of requests.
var claims = map[string][]any{
	"person": {true}, "caller": {"root"}, "user": {"root"}, "author": {"root"}, "host": {"root"}, "label": {"root"}, "once": {true},
	"pid":    {-1, math.MaxInt32 + 1, int64(math.MaxInt64), 1},
	"holder": {"root", map[string]any{"user": "root", "host": "root", "label": "root", "pid": 1}, map[string]any{"caller": "root"}, map[string]any{"person": true}},
}

// variants returns the body of a request with each claim in each possible place.
func variants(t *testing.T, body string) []string {
	t.Helper()
	all := []string{body}
	if body == "" {
		return all
	}
	var whole map[string]any
	if err := json.Unmarshal([]byte(body), &whole); err != nil {
		t.Fatal(err)
	}
	places := []map[string]any{whole}
	for field, v := range whole {
		switch v := v.(type) {
		case map[string]any:
			if field == "holder" {
				places = append(places, v)
			}
		case []any:
			for _, one := range v {
				if one, ok := one.(map[string]any); ok {
					places = append(places, one)
					if holder, ok := one["holder"].(map[string]any); ok {
						places = append(places, holder)
					}
				}
			}
		}
	}
	for _, place := range places {
		for field, values := range claims {
			was, had := place[field]
			for _, value := range values {
				place[field] = value
				text, err := json.Marshal(whole)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, string(text))
			}
			if delete(place, field); had {
				place[field] = was
			}
		}
	}
	return all
}

// A sight is what other callers see of holders and authors of breaks.
type sight struct{ holders, authors []string }

// see collects the holders, waiters and authors in a reply.
func (s *sight) see(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			s.see(one)
		}
	case map[string]any:
		if _, ok := v["person"]; ok {
			who := map[string]any{}
			for _, field := range []string{"caller", "user", "host", "pid", "person", "label"} {
				who[field] = v[field]
			}
			text, _ := json.Marshal(who)
			s.holders = append(s.holders, string(text))
		}
		if author, ok := v["author"].(string); ok && author != "" {
			s.authors = append(s.authors, author)
		}
		for _, one := range v {
			s.see(one)
		}
	}
}

// seen returns what another caller sees of all names.
func (s *site) seen(t *testing.T) (all sight) {
	t.Helper()
	get := func(target string) {
		t.Helper()
		w := s.send(s.request(t.Context(), "all", http.MethodGet, target, ""))
		d := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", target, w.Code, w.Body, err)
		}
		all.see(v)
	}
	get("/v1/locks")
	get("/v1/once")
	for _, name := range []string{"bank/held", "bank/free", "bank/done", "bank/broken"} {
		get("/v1/locks/" + url.PathEscape(name))
		get("/v1/locks/" + url.PathEscape(name) + "/history")
	}
	return all
}

// persons are the endpoints at which a caller holds a lock as a person.
var persons = []string{"POST /v1/locks/{name}/hold", "POST /v1/driver/hold"}

// TestServerSaysWhoItWas checks that others see the caller that the server has identified, whatever
// a request contains about its caller. A holder is a person only at the endpoints for persons.
func TestServerSaysWhoItWas(t *testing.T) {
	streaming := endpoint{"POST /v1/leases", "/v1/leases?hold=1", `{"name":"bank/held","ttl_ms":60000,"holder":{"host":"web-3"}}`, caller.Acquire, streamOf}
	shown := map[string]bool{}
	for _, e := range append(slices.Clone(endpoints), streaming) {
		for _, body := range variants(t, strings.NewReplacer("TOKEN", "7", "bank/held", "bank/free").Replace(e.body)) {
			for _, swap := range []*strings.Replacer{
				strings.NewReplacer("bank%2Fheld", "bank%2Ffree"), // the lock is free
				strings.NewReplacer("bank/free", "bank/held", "bank%2Fdone", "bank%2Ffree", `"fencing_token":7`, `"fencing_token":TOKEN`,
					`"token":7`, `"token":TOKEN`, `"ttl_ns"`, `"queue":true,"waiter_ttl_ns":60000000000,"ttl_ns"`),
			} {
				synctest.Test(t, func(t *testing.T) {
					if e.says(t, swap.Replace(e.path()), swap.Replace(body)) {
						shown[e.pattern] = true
					}
				})
			}
		}
	}
	want := []string{
		"POST /v1/driver/acquire", "POST /v1/driver/acquire-all", "POST /v1/driver/break", "POST /v1/driver/hold", "POST /v1/leases",
		"POST /v1/locks/{name}/break", "POST /v1/locks/{name}/hold", "POST /v1/once/{key}",
	}
	if got := slices.Sorted(maps.Keys(shown)); !slices.Equal(got, want) {
		t.Errorf("callers have shown at\n%q, want\n%q", got, want)
	}
}

// says sends one request as eve, and reports whether others see eve afterwards.
func (e endpoint) says(t *testing.T, target, body string) (shown bool) {
	t.Helper()
	s := newSite(t)
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	before := s.seen(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // ends a stream
	defer cancel()
	answered := make(chan *httptest.ResponseRecorder)
	go func() { answered <- s.send(s.request(ctx, "eve", e.method(), target, body)) }()
	synctest.Wait()
	after := s.seen(t) // while a stream holds the lock
	w := <-answered
	for _, who := range after.holders {
		switch {
		case slices.Contains(before.holders, who):
			continue
		case !strings.Contains(who, `"caller":"eve"`), strings.Contains(who, `"pid":-`), len(who) > 200,
			strings.Contains(who, `"person":true`) != slices.Contains(persons, e.pattern):
			t.Errorf("%s %s: others see %s", target, body, who)
		}
		shown = true
	}
	for _, author := range after.authors {
		if author != "ada" && author != "eve" { // ada's break is in the store from the start
			t.Errorf("%s %s: others see a break by %s", target, body, author)
		}
		shown = shown || author == "eve"
	}
	if shown && w.Code >= 400 {
		t.Errorf("%s %s: refused (%s), and others see it", target, body, w.Body)
	}
	for _, pid := range []string{fmt.Sprint(-1), fmt.Sprint(math.MaxInt32 + 1), fmt.Sprint(int64(math.MaxInt64))} {
		if strings.Contains(body, `"pid":`+pid) && w.Code < 400 {
			t.Errorf("%s %s: %d, a process has no such number", target, body, w.Code)
		}
	}
	return shown
}
