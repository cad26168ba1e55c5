package httplock_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestHoldsThroughTwoServers checks how a person who holds a lock at a server whose store is
// another server releases it there. The near server releases the lease if it may see lease IDs at
// the far server, breaks the lease if it may only do that, and is refused otherwise.
func TestHoldsThroughTwoServers(t *testing.T) {
	for rights, want := range map[caller.Rights]struct {
		status int
		kind   lockinfo.HistoryKind
	}{
		caller.All:                   {http.StatusNoContent, lockinfo.HistoryReleased},
		caller.All &^ caller.Admin:   {http.StatusNoContent, lockinfo.HistoryBroken},
		caller.Acquire | caller.Read: {http.StatusForbidden, lockinfo.HistoryAcquired},
	} {
		t.Run(rights.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := mem.New(&mem.Options{History: true})
				n := &network{}
				n.with(t, first, store, &server.Options{Callers: house{"edge": {Name: "edge", Rights: rights}}, Logger: slog.New(slog.DiscardHandler)})
				near, err := server.New(n.as(t, "edge"), &server.Options{Secret: bytes.Repeat([]byte("s"), 32), Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = near.Close(t.Context()) }()
				h := exchange.Recorded(t, near)
				post := func(path string, body any) *httptest.ResponseRecorder {
					text, err := json.Marshal(body)
					if err != nil {
						t.Fatal(err)
					}
					r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, bytes.NewReader(text))
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Idempotency-Key", strings.Repeat("k", 16))
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					return w
				}
				var held wire.Hold
				w := post("/v1/locks/deploy/hold", wire.HoldRequest{ForMS: 60_000, Reason: "freeze"})
				if err := json.Unmarshal(w.Body.Bytes(), &held); err != nil || w.Code != http.StatusCreated {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
				w = post("/v1/locks/deploy/hold/release", wire.HoldRelease{FencingToken: held.FencingToken})
				if w.Code != want.status {
					t.Errorf("%d %s, want %d", w.Code, w.Body, want.status)
				}
				events, err := store.History(t.Context(), "deploy")
				if err != nil || events[len(events)-1].Kind != want.kind {
					t.Errorf("%+v, %v; want %v", events, err, want.kind)
				}
			})
		})
	}
}
