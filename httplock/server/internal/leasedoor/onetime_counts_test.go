package leasedoor_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestTokenCounts checks that the server counts since its start what became of one-time tokens, and
// that the program's own Observer receives the events, too.
func TestTokenCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		store := &hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: func(_ context.Context, _ hook.Request, send func() error) error {
			if down.Load() {
				return driver.ErrUnavailable
			}
			return send()
		}}
		heard := 0
		s := openWith(t, store, server.Options{Observer: func(e observe.Event) {
			if e.Kind == observe.TokenIssued {
				heard++
			}
		}})
		counts := func() (v wire.TokenCounts, text string) {
			synctest.Wait() // the Observer has received the events
			w := s.do(http.StatusOK, "GET", "/v1/onetime", "", nil, &v)
			return v, w.Body.String()
		}
		if v, _ := counts(); v.SinceMS != 0 || len(v.Collections) != 1 || v.Collections[0] != (wire.TokenCollection{Name: "onetime"}) {
			t.Errorf("at the start: %+v", v)
		}
		var secrets []string
		issue := func(ttl time.Duration) string {
			var issued wire.IssuedToken
			s.do(http.StatusCreated, "POST", "/v1/onetime", "", wire.TokenRequest{Payload: "marker-of-a-payload", TTLMS: ttl.Milliseconds()}, &issued)
			secrets = append(secrets, issued.Secret, issued.ID)
			return issued.Secret
		}
		send := func(what, secret string, status int) {
			t.Helper()
			s.do(status, "POST", "/v1/onetime/"+what, "", wire.TokenSecret{Secret: secret}, nil)
		}
		redeemed, revoked, short := issue(time.Hour), issue(time.Hour), issue(time.Minute)
		send("redeem", redeemed, http.StatusOK)
		send("redeem", redeemed, http.StatusGone)
		send("revoke", revoked, http.StatusOK)
		send("redeem", revoked, http.StatusGone)
		send("redeem", "no token", http.StatusBadRequest)
		time.Sleep(2 * time.Minute)
		send("redeem", short, http.StatusGone)
		down.Store(true)
		send("redeem", revoked, http.StatusServiceUnavailable)
		down.Store(false)
		v, text := counts()
		if want := (wire.TokenCollection{Name: "onetime", Issued: 3, Redeemed: 1, Revoked: 1, Expired: 1, Refused: 3, Failed: 1}); v.Collections[0] != want || v.SinceMS < 120_000 {
			t.Errorf("%+v, want %+v", v, want)
		}
		for _, secret := range append(secrets, "marker") {
			if strings.Contains(text, secret[:6]) {
				t.Errorf("%s shows %s", text, secret)
			}
		}
		time.Sleep(9 * 24 * time.Hour) // the store deletes the tokens
		if v, _ = counts(); v.Collections[0].Pruned != 3 || heard != 3 {
			t.Errorf("%+v; the program's Observer heard of %d", v, heard)
		}
	})
}

// TestTokenCountsRefused checks that only callers who may read every name can read the counts, and
// that a store without one-time tokens is reported as unsupported.
func TestTokenCountsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann := &caller.Caller{Name: "ann", Rights: caller.All, Prefixes: []string{"app/"}}
		s := openWith(t, mem.New(nil), server.Options{Callers: always{ann}})
		s.refused(http.StatusForbidden, "not-permitted", "GET", "/v1/onetime", "", nil)
		ann.Prefixes, ann.Rights = nil, caller.OneTime
		s.refused(http.StatusForbidden, "not-permitted", "GET", "/v1/onetime", "", nil)
		ann.Rights = caller.Read
		s.do(http.StatusOK, "GET", "/v1/onetime", "", nil, nil)
		s = open(t, driver.Forward{Engine: mem.New(nil), Without: driver.Capabilities{OneTime: true}})
		s.refused(http.StatusNotImplemented, "unsupported", "GET", "/v1/onetime", "", nil)
	})
}
