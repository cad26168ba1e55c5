package leasedoor_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/wire"
)

// free fails the test unless the names have no holder and no waiter.
func free(t *testing.T, engine driver.Engine, names ...string) {
	t.Helper()
	for _, name := range names {
		if lock, err := engine.Inspect(t.Context(), name); err != nil || len(lock.Holders)+len(lock.Queue) > 0 {
			t.Errorf("%q: %+v, %v; want nobody", name, lock, err)
		}
	}
}

// TestAcquireAll checks that a request for several names acquires all of them or none. A repeat at
// another server returns the same leases, marked as repeated. Each lease can be renewed and
// released alone or with others.
func TestAcquireAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		req := wire.LeaseRequest{Names: []string{"m", "a", "z"}, TTLMS: 10_000, LockDelayMS: 1_000, Holder: &wire.Self{Label: "worker"}}
		blocker := b.lease("z", "", wire.LeaseRequest{})
		p := a.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", key, req)
		if len(p.Holders) != 1 || p.Detail[:11] != `acquire "z"` {
			t.Errorf("in the way is %+v: %s", p.Holders, p.Detail)
		}
		free(t, engine, "m", "a")
		b.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(blocker), nil)
		var first, again wire.Leases
		a.do(http.StatusCreated, "POST", "/v1/leases", key, req, &first)
		for i, l := range first.Leases {
			if l.Name != req.Names[i] || l.FencingToken == 0 || l.TTLMS != 10_000 || l.ExpiresInMS != 10_000 || l.Repeated || expiresIn(t, engine, l.Name) != 11*time.Second {
				t.Errorf("lease %d is %+v", i, l)
			}
		}
		time.Sleep(2 * time.Second)
		b.do(http.StatusOK, "POST", "/v1/leases", key, req, &again)
		for i, l := range again.Leases {
			if l.LeaseID != first.Leases[i].LeaseID || l.Token != first.Leases[i].Token || !l.Repeated || l.Holder == nil || l.Holder.Label != "worker" || l.ExpiresInMS != 10_000 {
				t.Errorf("repeated, lease %d is %+v", i, l)
			}
		}
		b.refused(http.StatusConflict, "lock-held", "POST", "/v1/leases", otherKey, wire.LeaseRequest{Names: []string{"x", "a"}})
		free(t, engine, "x")
		var refs wire.LeaseRefs
		for _, l := range first.Leases {
			refs.Leases = append(refs.Leases, ref(l).LeaseRef)
		}
		b.results("renew", refs, 200, 200, 200)
		a.results("release", refs, 204, 204, 204)
		free(t, engine, req.Names...)
		b.refused(http.StatusGone, "released", "POST", "/v1/leases", key, req)
	})
}

// TestKeyReusedWithNames checks that a request that repeats a key with other names or other options
// is refused at each server, and changes nothing.
func TestKeyReusedWithNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		req := wire.LeaseRequest{Names: []string{"n", "m"}, TTLMS: 10_000}
		a.do(http.StatusCreated, "POST", "/v1/leases", key, req, nil)
		time.Sleep(time.Second)
		for what, second := range map[string]wire.LeaseRequest{
			"another name": {Names: []string{"m", "x"}}, "fewer": {Names: []string{"m"}}, "more": {Names: []string{"x", "m", "n"}}, "one": {Name: "n"},
			"another mode": {Names: req.Names, Mode: "shared"}, "a token": {Names: req.Names, MinToken: 1 << 52},
		} {
			for _, s := range []*site{a, b} {
				second.TTLMS = 600_000
				if p := s.refused(http.StatusUnprocessableEntity, "key-reused", "POST", "/v1/leases", key, second); p.Code != "key-reused" {
					t.Error(what)
				}
			}
		}
		a.refused(http.StatusConflict, "other-holder", "POST", "/v1/leases", key, wire.LeaseRequest{Names: req.Names, Holder: &wire.Self{Label: "x"}})
		if n, m := expiresIn(t, engine, "n"), expiresIn(t, engine, "m"); n != 9*time.Second || m != n {
			t.Errorf("the requests of others have made the leases last for %s and %s", n, m)
		}
		free(t, engine, "x")
		a.do(http.StatusOK, "POST", "/v1/leases", key, wire.LeaseRequest{Names: []string{"m", "n"}}, nil) // the order does not matter
	})
}

// TestKeyReusedWithNamesAtOnce checks that only one of two hosts that use one key at the same time
// acquires the locks.
func TestKeyReusedWithNamesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		req := wire.LeaseRequest{Names: []string{"n", "m"}, TTLMS: 10_000}
		first := open(t, engine)
		second := open(t, &hook.Engine{Forward: driver.Forward{Engine: engine}, Each: func(_ context.Context, r hook.Request, send func() error) error {
			if r.Method == "AcquireAll" { // second has looked for an earlier request, and found none
				first.do(http.StatusCreated, "POST", "/v1/leases", key, req, nil)
			}
			return send()
		}})
		second.refused(http.StatusConflict, "other-holder", "POST", "/v1/leases", key, wire.LeaseRequest{Names: req.Names, Holder: &wire.Self{Host: "web-2"}})
	})
}

// TestBadNames checks that the store receives no request that is wrong. A store that cannot acquire
// several names in one step is reported as unsupported.
func TestBadNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFlaky(mem.New(nil))
		s := open(t, store)
		many := make([]string, 129)
		for i := range many {
			many[i] = keyOf(i)
		}
		for _, bad := range []wire.LeaseRequest{
			{Name: "n", Names: []string{"m"}}, {Names: many}, {Names: []string{"n", "n"}}, {Names: []string{"n", ""}}, {Names: []string{"n", "a\nb"}},
			{Names: []string{"n"}, WaitMS: 1}, {Names: []string{"n"}, TTLMS: 9}, {Names: []string{"n"}, Mode: "semaphore"},
		} {
			s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/leases", key, bad)
		}
		s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/leases", key, map[string]any{"names": []string{}})
		s.refused(http.StatusBadRequest, "invalid", "POST", "/v1/leases?hold=1", key, wire.LeaseRequest{Names: []string{"n"}})
		s.refused(http.StatusForbidden, "reserved-name", "POST", "/v1/leases", key, wire.LeaseRequest{Names: []string{"n", "holdfast@x"}})
		s.refused(http.StatusBadRequest, "key-invalid", "POST", "/v1/leases", "short", wire.LeaseRequest{Names: []string{"n"}})
		if n := store.sends.Load(); n != 0 {
			t.Errorf("the store has seen %d requests", n)
		}
		none := open(t, driver.Forward{Engine: mem.New(nil), Without: driver.Capabilities{AcquireAll: true}})
		none.refused(http.StatusNotImplemented, "unsupported", "POST", "/v1/leases", key, wire.LeaseRequest{Names: []string{"n"}})
		few := openWith(t, mem.New(nil), server.Options{Limits: server.Limits{Leases: 3}})
		few.do(http.StatusCreated, "POST", "/v1/leases", "", wire.LeaseRequest{Names: []string{"a", "b"}}, nil)
		few.refused(http.StatusTooManyRequests, "too-many-leases", "POST", "/v1/leases", "", wire.LeaseRequest{Names: []string{"c", "d"}})
		few.lease("e", "", wire.LeaseRequest{}) // the refused request does not count
		few.server.Drain()
		few.refused(http.StatusServiceUnavailable, "draining", "POST", "/v1/leases", "", wire.LeaseRequest{Names: []string{"f"}})
	})
}

// TestAcquireAllLostReplies checks that the server repeats a request whose reply from the store was
// lost. A request without a key leaves no lease if it fails or its caller hangs up.
func TestAcquireAllLostReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lose atomic.Int32
		engine := mem.New(nil)
		s := open(t, away(engine, "AcquireAll", func() bool { return lose.Add(-1) >= 0 }, true))
		for _, k := range []string{"", key} {
			var got wire.Leases
			lose.Store(1)
			s.do(http.StatusCreated, "POST", "/v1/leases", k, wire.LeaseRequest{Names: []string{"n", "m"}}, &got)
			for _, l := range got.Leases {
				if l.Repeated {
					t.Errorf("with the key %q the first request is a repeat: %+v", k, l)
				}
				s.do(http.StatusNoContent, "POST", "/v1/leases/release", "", ref(l), nil)
			}
		}
		lose.Store(1 << 30)
		s.refused(http.StatusGatewayTimeout, "outcome-unknown", "POST", "/v1/leases", "", wire.LeaseRequest{Names: []string{"n", "m"}})
		synctest.Wait()
		free(t, engine, "n", "m")
		ctx, hangUp := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.send(ctx, "POST", "/v1/leases", "", wire.LeaseRequest{Names: []string{"n", "m"}})
		}()
		time.Sleep(time.Second)
		hangUp()
		<-done
		synctest.Wait()
		free(t, engine, "n", "m")
	})
}

// TestAcquireAllCancelsInTurn checks that a request for many names whose outcome is unknown has one
// cancel at a time under way, and sends no other after one without an answer.
func TestAcquireAllCancelsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, sent atomic.Int32
		lost := away(mem.New(nil), "AcquireAll", func() bool { return true }, true)
		s := open(t, &hook.Engine{Forward: driver.Forward{Engine: lost}, Each: func(ctx context.Context, req hook.Request, send func() error) error {
			if req.Method != "Release" {
				return send()
			}
			sent.Add(1)
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			<-ctx.Done()
			return ctx.Err()
		}})
		req := wire.LeaseRequest{}
		for i := range holdfast.MaxNames {
			req.Names = append(req.Names, fmt.Sprint("n", i))
		}
		s.refused(http.StatusGatewayTimeout, "outcome-unknown", "POST", "/v1/leases", "", req)
		time.Sleep(time.Minute)
		if most.Load() != 1 || sent.Load() > ask.Tries {
			t.Errorf("%d cancels, %d of them at once; want those of one name, one at a time", sent.Load(), most.Load())
		}
	})
}
