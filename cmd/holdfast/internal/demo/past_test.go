package demo

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// TestPast checks that a new demo has charts of 15 minutes with few losses. Each lease of its past
// has ended, and its token is less than present ones.
func TestPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := WithPast(mem.New(&mem.Options{History: true}), 1)
		srv, err := server.New(engine, &server.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = srv.Close(t.Context()) }()
		synctest.Wait()
		var v wire.Stats
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/stats", nil))
		if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		empty, losses, open, waiting := 0, 0, 0, 0
		for _, b := range v.Buckets {
			if b.Acquired+b.HandedOver == 0 {
				empty++
			}
			losses += b.Expired + b.Lost + b.Broken
			open += b.Acquired + b.HandedOver - b.Released - b.Expired
			waiting += b.Queued - b.HandedOver - b.GaveUp
		}
		if len(v.Buckets) < 180 || empty > 20 || losses != len(crashes) || open != 0 || waiting != 0 || v.LossesAtLeast || len(v.Contended) < 3 {
			t.Errorf("%d buckets, %d of them empty, %d losses, %d leases and %d waits that do not end, at least: %t, %d contended names",
				len(v.Buckets), empty, losses, open, waiting, v.LossesAtLeast, len(v.Contended))
		}
		var l wire.History
		w = httptest.NewRecorder()
		srv.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/locks/deploy%2Fshop/history", nil))
		if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil || len(l.Events) != 64 {
			t.Errorf("%d events of a name, %v", len(l.Events), err)
		}
		last := uint64(0)
		for _, e := range pastOf(1) {
			if e.Kind.Begins() {
				if e.Token <= last || e.Token >= uint64(time.Now().UnixMicro()) {
					t.Errorf("token %d of %s, after %d", e.Token, e.Name, last)
				}
				last = e.Token
			}
			if e.Ago < 0 || e.Ago > pastSpan || e.Kind == lockinfo.HistoryGap {
				t.Errorf("%+v", e)
			}
		}
	})
}

// TestCalm checks that a fleet loses so few leases in ten minutes that each is worth a look.
func TestCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		losses := map[string]int{}
		s := perform(t, 1, 10*time.Minute, func(*stage) {})
		for _, e := range s.events {
			switch e.Kind {
			case lockinfo.HistoryExpired, lockinfo.HistoryLost, lockinfo.HistoryBroken:
				losses[e.Kind.String()+" "+e.Name]++
			}
		}
		sum := 0
		for _, n := range losses {
			sum += n
		}
		if sum < 2 || sum > 15 {
			t.Errorf("%d losses: %v", sum, losses)
		}
		t.Log(losses)
	})
}
