package leasedoor_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// keyOf returns the key of the i-th caller.
func keyOf(i int) string { return fmt.Sprintf("key-of-caller-%06d", i) }

// TestBadRequests checks that a request that is wrong in itself is refused, and changes nothing.
func TestBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFlaky(mem.New(nil))
		s := open(t, store)
		good := wire.LeaseRequest{Name: "n"}
		for _, k := range []string{"short", "fifteen-charact", `"unclosed-0123456789`, "with space 0123456789", strings.Repeat("x", 256)} {
			s.refused(http.StatusBadRequest, "key-invalid", "POST", "/v1/leases", k, good)
			s.refused(http.StatusBadRequest, "key-invalid", "POST", "/v1/once/k", k, wire.OnceRequest{})
		}
		for _, bad := range []wire.LeaseRequest{
			{}, {Name: "a\nb"}, {Name: strings.Repeat("x", 513)},
			{Name: "n", Mode: "Exclusive"}, {Name: "n", Mode: "semaphore"}, {Name: "n", Limit: 2}, {Name: "n", Mode: "semaphore", Limit: 2, Permits: 3},
			{Name: "n", TTLMS: 9, ShortTTL: true}, {Name: "n", TTLMS: 999}, {Name: "n", TTLMS: -1}, {Name: "n", TTLMS: 1 << 62}, {Name: "n", TTLMS: 30*24*3600*1000 + 1},
			{Name: "n", WaitMS: -1}, {Name: "n", MinHoldMS: -1}, {Name: "n", MinHoldMS: 1}, {Name: "n", LockDelayMS: -1}, {Name: "n", LockDelayMS: 9}, {Name: "n", LockDelayMS: 1 << 62}, {Name: "n", TTLMS: 600_000, LockDelayMS: 30*24*3600*1000 - 599_999}, {Name: "n", MinToken: 1 << 60},
			{Name: "n", Reason: "\x1b"}, {Name: "n", Holder: &wire.Self{Host: "\u202e"}}, {Name: "n", Labels: map[string]string{"k": strings.Repeat("x", 5000)}},
		} {
			p := s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/leases", key, bad)
			if bad.WaitMS < 0 && p.Detail != "wait_ms: -1 is negative" {
				t.Errorf("a negative wait_ms: %s", p.Detail)
			}
		}
		id := "0123456789abcdef0123456789abcdef"
		many := make([]wire.LeaseRef, 129)
		for i := range many {
			many[i] = wire.LeaseRef{Name: "n", LeaseID: id}
		}
		for _, bad := range []wire.LeaseRefs{
			{}, {LeaseRef: wire.LeaseRef{Name: "n"}}, {LeaseRef: wire.LeaseRef{Name: "n", LeaseID: strings.ToUpper(id)}}, {LeaseRef: wire.LeaseRef{LeaseID: id}},
			{LeaseRef: wire.LeaseRef{Name: "n", LeaseID: id, TTLMS: 9}},
			{Leases: many}, {LeaseRef: wire.LeaseRef{Name: "n"}, Leases: many[:1]}, {Leases: []wire.LeaseRef{many[0], {Name: "n", LeaseID: "x"}}},
		} {
			for _, path := range []string{"renew", "check", "release"} {
				p := s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/leases/"+path, "", bad)
				if strings.Contains(strings.ToLower(p.Detail), id) {
					t.Errorf("%s: the refusal shows a lease ID: %s", path, p.Detail)
				}
			}
		}
		for _, ref := range []map[string]any{{"name": "n", "lease_id": id, "ttl_ms": 30}, {"leases": []any{map[string]any{"name": "n", "lease_id": id, "ttl_ms": 30}}}} {
			if p := s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/leases/renew", "", ref); !strings.Contains(p.Detail, "for 30 seconds send 30000") {
				t.Errorf("a client that renews and means seconds reads: %s", p.Detail)
			}
		}
		for _, path := range []string{"check", "release"} {
			s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/leases/"+path, "", wire.LeaseRef{Name: "n", LeaseID: id, ShortTTL: true})
		}
		for _, bad := range []map[string]any{{"leases": []any{}}, {"name": "n", "lease_id": id, "force": true}, {"name": 7}} {
			w := s.send(t.Context(), "POST", "/v1/leases/renew", "", bad)
			if w.Code != http.StatusBadRequest {
				t.Errorf("%v: %d %s", bad, w.Code, w.Body)
			}
		}
		s.refused(http.StatusBadRequest, "malformed-json", "POST", "/v1/leases", key, map[string]any{"name": "n", "holder": map[string]any{"user": "root"}})
		s.refused(http.StatusBadRequest, "malformed-json", "POST", "/v1/leases", key, map[string]any{"name": "n", "ttl": 7})
		run := wire.OnceResult{LeaseID: id}
		for _, bad := range []wire.OnceResult{
			{}, {LeaseID: id, RetentionMS: 9}, {LeaseID: id, RetentionMS: -1}, {LeaseID: id, Result: []byte("1"), ResultBytes: []byte("1")},
			{LeaseID: id, ResultBytes: make([]byte, 1<<20+1)},
		} {
			s.refused(http.StatusBadRequest, "invalid", "PUT", "/v1/once/k/result", "", bad)
		}
		s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/once/k", key, wire.OnceRequest{Fingerprint: strings.Repeat("x", 257)})
		s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/once/k", key, wire.OnceRequest{Fingerprint: "\x00"})
		s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/once/k/fail", "", wire.OnceFailure{})
		if n := store.sends.Load(); n != 0 {
			t.Errorf("the store has seen %d requests", n)
		}
		s.refused(http.StatusGone, "lost", "PUT", "/v1/once/k/result", "", run)

		p := s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "n", TTLMS: 30})
		if !strings.Contains(p.Detail, "for 30 seconds send 30000") {
			t.Errorf("a client that means seconds reads: %s", p.Detail)
		}
		l := s.lease("n", key, wire.LeaseRequest{TTLMS: 500, ShortTTL: true})
		s.do(http.StatusOK, "POST", "/v1/leases/renew", "", wire.LeaseRef{Name: "n", LeaseID: l.LeaseID, TTLMS: 500, ShortTTL: true}, nil)
	})
}

// TestCallers checks that one caller's keys, names, rights and labels are of no use to another
// caller.
func TestCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		as := func(c *caller.Caller) *site { return openWith(t, engine, server.Options{Callers: always{c}}) }
		ada := as(&caller.Caller{Name: "ada", Rights: caller.All})
		bob := as(&caller.Caller{Name: "bob", Rights: caller.Acquire | caller.Read, Prefixes: []string{"bob/", "n"}})
		l := ada.lease("n", key, wire.LeaseRequest{Holder: &wire.Self{Host: "web-3", PID: 812, Program: "job", Label: "nightly"}, Reason: "film", Labels: map[string]string{"user": "root"}})
		p := bob.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "n", Holder: &wire.Self{Label: "ada"}})
		if len(p.Holders) != 1 {
			t.Fatalf("in the way is %+v", p.Holders)
		}
		if h := p.Holders[0]; h.User != "ada" || h.Caller != "ada" || h.Host != "web-3" || h.PID != 812 || h.Program != "job" || h.Label != "nightly" || h.Reason != "film" || h.Labels["user"] != "root" {
			t.Errorf("in the way is %+v", h)
		}
		if !strings.Contains(p.Detail, `acquire "n": held by ada as nightly on web-3 (pid 812, job)`) || strings.Contains(p.Detail, l.LeaseID) {
			t.Errorf("detail: %s", p.Detail)
		}
		bob.refused(http.StatusForbidden, "not-permitted", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "ada/n"})
		bob.refused(http.StatusForbidden, "not-permitted", "POST", "/v1/once/n", key, wire.OnceRequest{})
		bob.refused(http.StatusForbidden, "not-permitted", "POST", "/v1/onetime", "", wire.TokenRequest{TTLMS: 1000})
		bob.refused(http.StatusForbidden, "not-permitted", "GET", "/v1/once", "", nil)
		bob.refused(http.StatusForbidden, "not-permitted", "POST", "/v1/leases/release", key, wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: "ada/n"}})
		ada.refused(http.StatusForbidden, "reserved-name", "GET", "/v1/locks/holdfast@server%2Fsecret", "", nil)
		for _, s := range []*site{ada, bob} {
			s.refused(http.StatusForbidden, "reserved-name", "POST", "/v1/leases/check", "", wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: "holdfast@x", LeaseID: l.LeaseID}})
		}
		var lock wire.LockDetails
		w := bob.do(http.StatusOK, "GET", "/v1/locks/n", "", nil, &lock)
		if strings.Contains(w.Body.String(), l.LeaseID) || len(lock.Holders) != 1 {
			t.Errorf("shown: %s", w.Body)
		}
		// A holder that is a string is the label.
		ada.do(http.StatusCreated, "POST", "/v1/leases", otherKey, map[string]any{"name": "m", "holder": "worker-7"}, nil)
		ada.do(http.StatusOK, "GET", "/v1/locks/m", "", nil, &lock)
		if h := lock.Holders[0]; h.Label != "worker-7" || h.User != "ada" {
			t.Errorf("shown: %+v", h)
		}
	})
}

// TestLimits checks the limits of waiters and leases of one caller. Ended waits and leases do not
// count.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openWith(t, mem.New(nil), server.Options{Limits: server.Limits{Waiters: 1, Leases: 3}}).async()
		l := s.lease("n", key, wire.LeaseRequest{TTLMS: 600_000})
		ctx, hangUp := context.WithCancel(t.Context())
		first := s.later(ctx, keyOf(1), wire.LeaseRequest{Name: "n", WaitMS: 50_000})
		w := s.send(t.Context(), "POST", "/v1/leases", keyOf(2), wire.LeaseRequest{Name: "n", WaitMS: 1000})
		if s.problem(w, http.StatusTooManyRequests, "too-many-waiters"); w.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		hangUp()
		<-first
		s.do(http.StatusAccepted, "POST", "/v1/leases", keyOf(1), wire.LeaseRequest{Name: "n", WaitMS: 1}, nil)
		s.lease("m", keyOf(3), wire.LeaseRequest{})
		s.refused(http.StatusTooManyRequests, "too-many-leases", "POST", "/v1/leases", keyOf(4), wire.LeaseRequest{Name: "o"})
		s.do(http.StatusOK, "POST", "/v1/leases", keyOf(3), wire.LeaseRequest{Name: "m"}, nil) // a repeat is the same lease
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		for range 5 { // a refused request does not count
			s.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", keyOf(5), wire.LeaseRequest{Name: "m"})
		}
		time.Sleep(31 * time.Second)
		s.lease("o", keyOf(4), wire.LeaseRequest{})
	})
}

// TestLimitOfLeasesByName checks that a lease counts by its name and its lease ID. A client of the
// engine interface may use one lease ID for many names, and the release of a missing lease ends no
// other lease.
func TestLimitOfLeasesByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openWith(t, mem.New(nil), server.Options{Limits: server.Limits{Leases: 2}})
		l := s.lease("a", key, wire.LeaseRequest{TTLMS: 600_000})
		s.refused(http.StatusGone, "lost", "POST", "/v1/leases/release", "", wire.LeaseRef{Name: "b", LeaseID: l.LeaseID})
		req := drivertest.Request("c", time.Hour)
		s.do(http.StatusOK, "POST", "/v1/driver/acquire", "", req, nil)
		req.Name = "d"
		s.refused(http.StatusTooManyRequests, "too-many-leases", "POST", "/v1/driver/acquire", "", req)
		s.refused(http.StatusTooManyRequests, "too-many-leases", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "e"})
	})
}

// TestLimitOfLeasesAfterCompletion checks that a run of do-once work that an engine has completed
// does not count as a lease.
func TestLimitOfLeasesAfterCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openWith(t, mem.New(nil), server.Options{Limits: server.Limits{Leases: 1}})
		for _, name := range []string{"a", "b"} {
			req := drivertest.Request(name, time.Hour)
			req.Once, req.Holder.Once = true, true
			s.do(http.StatusOK, "POST", "/v1/driver/acquire", "", req, nil)
			done := driver.CompleteRequest{Name: name, LeaseID: req.LeaseID, Record: []byte("done"), Retention: time.Hour}
			s.do(http.StatusOK, "POST", "/v1/driver/complete", "", done, nil)
		}
	})
}

// TestLimitOfResultsAfterRefusal checks that a result that the store refuses does not replace, in
// the caller's limit, the result that the store keeps.
func TestLimitOfResultsAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openWith(t, mem.New(nil), server.Options{Limits: server.Limits{Kept: 10_000}})
		var run wire.Lease
		s.do(http.StatusCreated, "POST", "/v1/once/a", key, wire.OnceRequest{}, &run)
		s.do(http.StatusNoContent, "PUT", "/v1/once/a/result", "", wire.OnceResult{LeaseID: run.LeaseID, ResultBytes: make([]byte, 10_000)}, nil)
		s.refused(http.StatusTooManyRequests, "too-much-kept", "POST", "/v1/once/b", otherKey, wire.OnceRequest{})
		s.refused(http.StatusGone, "lost", "PUT", "/v1/once/a/result", "", wire.OnceResult{LeaseID: strings.Repeat("f", 32), RetentionMS: 1000, ResultBytes: []byte{1}})
		s.refused(http.StatusTooManyRequests, "too-much-kept", "POST", "/v1/once/b", otherKey, wire.OnceRequest{})
		time.Sleep(24 * time.Hour)
		s.do(http.StatusCreated, "POST", "/v1/once/b", otherKey, wire.OnceRequest{}, nil)
	})
}

// TestRetryAfter checks the Retry-After header of a refusal.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		l := s.lease("n", key, wire.LeaseRequest{MinHoldMS: 7_000})
		again := func() string {
			w := s.send(t.Context(), "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n"})
			s.problem(w, http.StatusConflict, "lock-held")
			return w.Header().Get("Retry-After")
		}
		if got := again(); got != "1" {
			t.Errorf("held by a process: Retry-After %q, want 1", got)
		}
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		if got := again(); got != "7" {
			t.Errorf("kept closed for 7 s: Retry-After %q, want 7", got)
		}
		s.refused(http.StatusConflict, "kind-mismatch", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Name: "n", Mode: "semaphore", Limit: 2})
	})
}

// TestModes checks which modes can be held together, as in the library.
func TestModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		for i := range 3 {
			if l := s.lease("r", keyOf(i), wire.LeaseRequest{Mode: "shared"}); l.Mode != "shared" {
				t.Errorf("%+v", l)
			}
		}
		s.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "r"})
		s.lease("s", keyOf(0), wire.LeaseRequest{Mode: "semaphore", Limit: 3, Permits: 2})
		s.lease("s", keyOf(1), wire.LeaseRequest{Mode: "semaphore", Limit: 3})
		s.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", key, wire.LeaseRequest{Name: "s", Mode: "semaphore", Limit: 3})
		first := s.lease("t", keyOf(0), wire.LeaseRequest{})
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(first), nil)
		if l := s.lease("t", keyOf(1), wire.LeaseRequest{MinToken: first.FencingToken + 1_000_000}); l.FencingToken <= first.FencingToken+1_000_000 {
			t.Errorf("the token is %d, want it to be greater than the one that was seen", l.FencingToken)
		}
	})
}

// TestHistory checks that clients can read the history of a name. If the store keeps no history,
// the refusal explains how to switch it on.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(&mem.Options{History: true}))
		l := s.lease("a/b", key, wire.LeaseRequest{Reason: "film"})
		time.Sleep(2 * time.Second)
		s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
		var h wire.History
		s.do(http.StatusOK, "GET", "/v1/locks/a%2Fb/history", "", nil, &h)
		if len(h.Events) != 2 || h.Name != "a/b" || h.Events[0].Event != "acquired" || h.Events[0].Holder.Reason != "film" ||
			h.Events[1].Event != "released" || *h.Events[1].HeldMS != 2_000 || h.Events[1].FencingToken != l.FencingToken {
			t.Errorf("%+v", h)
		}
		p := open(t, mem.New(nil)).refused(http.StatusNotImplemented, "unsupported", "GET", "/v1/locks/n/history", "", nil)
		if !strings.Contains(p.Detail, "history=1") {
			t.Errorf("detail: %s", p.Detail)
		}
	})
}
