package leasedoor_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestNamesInPaths checks that every valid name works in a path.
func TestNamesInPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		for _, name := range []string{
			"n", "a/b", "/a", "a/", "a//b", "..", "../..", "a/../b", ".", "%", "%2F", "100%", "a b", " ", "+", "?", "#", "a?b#c", "a&b=c",
			"ü", "日本語/鍵", "🔒", `"`, `\`, "'", "{a}", "<b>", ";", ":", "@", "history", "break", "x/history", "a/break", strings.Repeat("/", 512), strings.Repeat("ü", 256),
		} {
			l := s.lease(name, key, wire.LeaseRequest{})
			path := "/v1/locks/" + url.PathEscape(name)
			if name == "." || name == ".." { // PathEscape does not escape them
				path = "/v1/locks/" + strings.ReplaceAll(name, ".", "%2E")
			}
			var lock wire.LockDetails
			s.do(http.StatusOK, "GET", path, "", nil, &lock)
			if lock.Name != name || !lock.Held || lock.LastToken != l.FencingToken {
				t.Errorf("%q is shown as %+v", name, lock)
			}
			var broke wire.Broke
			s.do(http.StatusOK, "POST", path+"/break", "", wire.BreakRequest{FencingToken: l.FencingToken}, &broke)
			if len(broke.Broken) != 1 || broke.Broken[0].FencingToken != l.FencingToken {
				t.Errorf("%q: broken: %+v", name, broke)
			}
			s.do(http.StatusCreated, "POST", "/v1/once/"+strings.TrimPrefix(path, "/v1/locks/"), key, wire.OnceRequest{}, nil)
		}
		for _, path := range []string{"/v1/locks/%00", "/v1/locks/%ff", "/v1/locks/" + strings.Repeat("x", 513), "/v1/locks/a%0Ab"} {
			s.refused(http.StatusBadRequest, "invalid", "GET", path, "", nil)
		}
	})
}

// TestList checks that a list comes in pages, sorted by name, with each lock once, or as lines. A
// caller cannot list names that it may not read.
func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		all := open(t, engine)
		var names []string
		for i := range 2345 {
			name := fmt.Sprintf("ci/%d/%c", i*7919%2345, 'a'+i%26)
			names = append(names, name)
			all.lease(name, key, wire.LeaseRequest{})
		}
		slices.Sort(names)
		all.lease("web", key, wire.LeaseRequest{})
		ci := openWith(t, engine, server.Options{Callers: always{&caller.Caller{Name: "ci", Rights: caller.All, Prefixes: []string{"ci/"}}}})
		for _, limit := range []int{0, 1000, 999, 173} {
			var got []string
			query, pages := url.Values{"prefix": {"ci/"}}, 0
			if limit > 0 {
				query.Set("limit", fmt.Sprint(limit))
			}
			for more := true; more; pages++ {
				var page wire.Locks
				ci.do(http.StatusOK, "GET", "/v1/locks?"+query.Encode(), "", nil, &page)
				for _, l := range page.Locks {
					got = append(got, l.Name)
				}
				more = page.NextCursor != ""
				query.Set("cursor", page.NextCursor)
			}
			if limit == 0 {
				limit = 1000
			}
			if !slices.Equal(got, names) || pages != (len(names)+limit-1)/limit {
				t.Errorf("limit %d: %d names in %d pages, want %d", limit, len(got), pages, len(names))
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/locks", nil)
		r.Header.Set("Accept", "text/html, application/x-ndjson;q=0.9")
		w := httptest.NewRecorder()
		all.handler.ServeHTTP(w, r)
		var got []string
		for lines := bufio.NewScanner(w.Body); lines.Scan(); {
			if w.Code != 200 {
				t.Fatal(lines.Text())
			}
			var l wire.Lock
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Fatal(err)
			}
			got = append(got, l.Name)
		}
		slices.Sort(got)
		if w.Header().Get("Content-Type") != "application/x-ndjson" || !slices.Equal(got, append(names, "web")) {
			t.Errorf("%d lines, %v", len(got), w.Header())
		}
		ci.refused(http.StatusForbidden, "not-permitted", "GET", "/v1/locks", "", nil)
		ci.refused(http.StatusForbidden, "not-permitted", "GET", "/v1/locks?prefix=web", "", nil)
		for _, query := range []string{"cursor=%25", "limit=0", "limit=1001", "limit=x", "prefix=%00"} {
			all.refused(http.StatusBadRequest, "invalid", "GET", "/v1/locks?"+query, "", nil)
		}
	})
}

// TestReservedNamesAreNotListed checks that lists do not contain the names that servers reserve for
// themselves.
func TestReservedNamesAreNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		s := open(t, engine)
		c, err := holdfast.New(engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Once(t.Context(), "holdfast@server/secret", nil, work("7")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Acquire(t.Context(), "holdfast@server/other", nil); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/v1/locks", "/v1/once", "/v1/locks?prefix=hold", "/v1/once?prefix=hold"} {
			if w := s.do(http.StatusOK, "GET", path, "", nil, nil); strings.Contains(w.Body.String(), "holdfast@") {
				t.Errorf("%s: %s", path, w.Body)
			}
		}
	})
}

// always identifies every request as the same caller.
type always struct{ caller *caller.Caller }

func (a always) Identify(*http.Request) (*caller.Caller, error) { return a.caller, nil }

// TestBreak checks that a break needs the token of the lease, and that the former holder learns the
// author and the reason.
func TestBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		ada := &caller.Caller{Name: "ada", Rights: caller.All}
		s := openWith(t, engine, server.Options{Callers: always{ada}})
		l := s.lease("n", key, wire.LeaseRequest{Holder: &wire.Self{Label: "nightly"}})
		s.refused(http.StatusGone, "not-held", "POST", "/v1/locks/n/break", "", wire.BreakRequest{FencingToken: l.FencingToken + 1})
		for range 2 { // with a key a repeat gets the first reply
			var broke wire.Broke
			s.do(http.StatusOK, "POST", "/v1/locks/n/break", otherKey, wire.BreakRequest{FencingToken: l.FencingToken, Reason: "stuck"}, &broke)
			if b := broke.Broken; len(b) != 1 || b[0].Author != "ada" || b[0].Reason != "stuck" || b[0].Holder.Label != "nightly" || b[0].Holder.User != "ada" {
				t.Errorf("broken: %+v", broke)
			}
		}
		s.refused(http.StatusGone, "not-held", "POST", "/v1/locks/n/break", otherKey, wire.BreakRequest{FencingToken: l.FencingToken + 1})
		for _, path := range []string{"renew", "check", "release"} {
			p := s.refused(http.StatusGone, "broken", "POST", "/v1/leases/"+path, "", ref(l))
			if p.Author != "ada" || p.Reason != "stuck" {
				t.Errorf("%s: %+v", path, p)
			}
		}
		var all wire.LeaseResults
		s.do(http.StatusOK, "POST", "/v1/leases/check", "", wire.LeaseRefs{Leases: []wire.LeaseRef{{Name: "n", LeaseID: l.LeaseID}}}, &all)
		if r := all.Leases[0]; r.Status != http.StatusGone || r.Code != "broken" || r.Author != "ada" || r.Reason != "stuck" {
			t.Errorf("%+v", r)
		}
		s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/locks/n/break", "", wire.BreakRequest{})
		s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/locks/n/break", "", wire.BreakRequest{FencingToken: 7, Reason: "\x00"})
		ada.Rights &^= caller.Break
		s.refused(http.StatusForbidden, "not-permitted", "POST", "/v1/locks/n/break", "", wire.BreakRequest{FencingToken: 7})
	})
}

// TestCompressedList checks that a long list is compressed for clients that accept this, with the
// same content.
func TestCompressedList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		for i := range 300 {
			s.lease(fmt.Sprintf("list/%03d", i), fmt.Sprintf("%s-%d", key, i), wire.LeaseRequest{TTLMS: 600_000})
		}
		get := func(path, accept, encoding string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, nil)
			r.Header.Set("Accept-Encoding", encoding)
			r.Header.Set("Accept", accept)
			w := httptest.NewRecorder()
			s.server.ServeHTTP(w, r)
			return w
		}
		for _, accept := range []string{"application/json", "application/x-ndjson"} {
			plain := get("/v1/locks", accept, "br, gzip;q=0")
			small := get("/v1/locks", accept, "br, gzip")
			if plain.Header().Get("Content-Encoding") != "" || small.Header().Get("Content-Encoding") != "gzip" || small.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s: headers %v and %v", accept, plain.Header(), small.Header())
			}
			if small.Body.Len() > plain.Body.Len()/8 {
				t.Errorf("%s: %d bytes, and %d compressed", accept, plain.Body.Len(), small.Body.Len())
			}
			zip, err := gzip.NewReader(small.Body)
			if err != nil {
				t.Fatal(err)
			}
			sorted := func(text string) []string { return slices.Sorted(strings.Lines(text)) }
			if text, err := io.ReadAll(zip); err != nil || !slices.Equal(sorted(string(text)), sorted(plain.Body.String())) {
				t.Errorf("%s: the compressed list is another: %v", accept, err)
			}
		}
		refused := get("/v1/locks?limit=0", "application/json", "gzip")
		if refused.Code != http.StatusBadRequest || refused.Header().Get("Content-Encoding") != "" || !strings.Contains(refused.Body.String(), `"invalid"`) {
			t.Errorf("%d %v %s", refused.Code, refused.Header(), refused.Body)
		}
	})
}

// TestListsInProgress checks that a caller may have few lists of any kind in progress, and that
// another list fails after a while.
func TestListsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		s := open(t, &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, req hook.Request, send func() error) error {
			if req.Method == "List" {
				<-end
			}
			return send()
		}})
		var lists sync.WaitGroup
		for range 16 {
			lists.Go(func() { s.do(http.StatusOK, "GET", "/v1/locks", "", nil, nil) })
		}
		synctest.Wait()
		s.refused(http.StatusTooManyRequests, "too-many-lists", "GET", "/v1/locks", "", nil)
		s.refused(http.StatusTooManyRequests, "too-many-lists", "GET", "/v1/once", "", nil)
		close(end)
		lists.Wait()
		s.do(http.StatusOK, "GET", "/v1/once", "", nil, nil)
	})
}
