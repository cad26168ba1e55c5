package leasedoor_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestOneTime checks that a token is redeemed once, at any server, and that a repeat with the same
// key counts as the same request.
func TestOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		a, b := open(t, engine), open(t, engine)
		issue := func(req wire.TokenRequest) wire.TokenSecret {
			var issued wire.IssuedToken
			a.do(http.StatusCreated, "POST", "/v1/onetime", "", req, &issued)
			if issued.ID == "" || issued.TTLMS != req.TTLMS {
				t.Errorf("issued: %+v", issued)
			}
			return wire.TokenSecret{Secret: issued.Secret}
		}
		secret := issue(wire.TokenRequest{Payload: "user 42", TTLMS: 60_000})
		for _, s := range []*site{b, a} {
			var r wire.Redeemed
			s.do(http.StatusOK, "POST", "/v1/onetime/redeem", key, secret, &r)
			if r.Payload != "user 42" || r.PayloadBytes != nil {
				t.Errorf("redeemed: %+v", r)
			}
		}
		b.refused(http.StatusGone, "redeemed", "POST", "/v1/onetime/redeem", otherKey, secret)
		b.refused(http.StatusGone, "redeemed", "POST", "/v1/onetime/redeem", "", secret)
		b.refused(http.StatusGone, "redeemed", "POST", "/v1/onetime/revoke", "", secret)

		secret = issue(wire.TokenRequest{PayloadBytes: []byte("\xff"), TTLMS: 60_000})
		var r wire.Redeemed
		b.do(http.StatusOK, "POST", "/v1/onetime/redeem", "", secret, &r)
		if string(r.PayloadBytes) != "\xff" {
			t.Errorf("redeemed: %+v", r)
		}
		secret = issue(wire.TokenRequest{TTLMS: 60_000})
		var revoked wire.Revoked
		b.do(http.StatusOK, "POST", "/v1/onetime/revoke", "", secret, &revoked)
		a.do(http.StatusOK, "POST", "/v1/onetime/revoke", "", secret, &revoked)
		a.refused(http.StatusGone, "revoked", "POST", "/v1/onetime/redeem", "", secret)
		secret = issue(wire.TokenRequest{TTLMS: 1000})
		time.Sleep(time.Second)
		a.refused(http.StatusGone, "expired", "POST", "/v1/onetime/redeem", "", secret)

		a.refused(http.StatusBadRequest, "malformed", "POST", "/v1/onetime/redeem", "", wire.TokenSecret{Secret: "hf1t_x"})
		a.refused(http.StatusBadRequest, "invalid", "POST", "/v1/onetime", "", wire.TokenRequest{Payload: "x"})
		a.refused(http.StatusBadRequest, "invalid", "POST", "/v1/onetime", "", wire.TokenRequest{Payload: "x", PayloadBytes: []byte("y"), TTLMS: 1000})
		a.refused(http.StatusBadRequest, "key-invalid", "POST", "/v1/onetime/redeem", "short", secret)
		a.server.Drain()
		a.refused(http.StatusServiceUnavailable, "draining", "POST", "/v1/onetime", "", wire.TokenRequest{TTLMS: 1000})
	})
}

// TestUnsupported checks that requests that a store does not support are refused as unsupported.
func TestUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := driver.Capabilities{OneTime: true, Records: true, Break: true, List: true, Shared: true, Semaphore: true}
		s := open(t, driver.Forward{Engine: mem.New(nil), Without: all})
		for _, r := range []struct {
			method, path string
			body         any
		}{
			{"POST", "/v1/onetime", wire.TokenRequest{TTLMS: 1000}},
			{"POST", "/v1/onetime/redeem", wire.TokenSecret{}},
			{"POST", "/v1/once/k", wire.OnceRequest{}},
			{"GET", "/v1/once/k", nil},
			{"GET", "/v1/once", nil},
			{"PUT", "/v1/once/k/result", wire.OnceResult{}},
			{"GET", "/v1/locks", nil},
			{"GET", "/v1/locks/n/history", nil},
			{"POST", "/v1/locks/n/break", wire.BreakRequest{FencingToken: 7}},
			{"POST", "/v1/leases", wire.LeaseRequest{Name: "n", Mode: "shared"}},
			{"POST", "/v1/leases", wire.LeaseRequest{Name: "n", Mode: "semaphore", Limit: 2}},
		} {
			s.refused(http.StatusNotImplemented, "unsupported", r.method, r.path, key, r.body)
		}
		var lock wire.LockDetails
		s.do(http.StatusOK, "GET", "/v1/locks/n", "", nil, &lock)
	})
}

// TestTokensArePruned checks that a server prunes the tokens of a store that does not do so itself,
// from its start and without requests. Its log and its Observer report this.
func TestTokensArePruned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := mem.New(nil)
		var pruned atomic.Int64
		var log bytes.Buffer
		opts := server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Observer: func(e observe.Event) {
			if e.Kind == observe.TokensPruned {
				pruned.Add(int64(e.Count))
			}
		}}
		before := open(t, engine)
		for range 3 {
			before.do(http.StatusCreated, "POST", "/v1/onetime", "", wire.TokenRequest{Payload: "x", TTLMS: 60_000}, nil)
		}
		if err := before.server.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		openWith(t, engine, opts) // receives no requests
		time.Sleep(25 * time.Hour)
		if n, _, err := engine.Prune(t.Context(), 10); n != 0 || err != nil {
			t.Errorf("%d tokens were not pruned, %v", n, err)
		}
		if n := pruned.Load(); n != 3 {
			t.Errorf("the Observer received %d tokens, want 3", n)
		}
		if n := strings.Count(log.String(), "one-time tokens pruned"); n < 24*6 || !strings.Contains(log.String(), "count=3") {
			t.Errorf("the log has %d rounds: %s", n, log.String())
		}
	})
}

// TestEmptyKey checks that an empty Idempotency-Key, such as of an unset variable, is refused: its
// client expects the same reply to a repeat.
func TestEmptyKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, mem.New(nil))
		var issued wire.IssuedToken
		s.do(http.StatusCreated, "POST", "/v1/onetime", "", wire.TokenRequest{TTLMS: 60_000}, &issued)
		var l wire.Lease
		s.do(http.StatusCreated, "POST", "/v1/leases", "", wire.LeaseRequest{Name: "a"}, &l)
		s.header = http.Header{"Idempotency-Key": {""}}
		s.refused(http.StatusBadRequest, "key-invalid", "POST", "/v1/onetime/redeem", "", wire.TokenSecret{Secret: issued.Secret})
		s.refused(http.StatusBadRequest, "key-invalid", "POST", "/v1/locks/a/break", "", wire.BreakRequest{FencingToken: l.FencingToken})
		s.refused(http.StatusBadRequest, "key-invalid", "POST", "/v1/leases/release", "", wire.LeaseRefs{LeaseRef: wire.LeaseRef{Name: "a"}})
	})
}
