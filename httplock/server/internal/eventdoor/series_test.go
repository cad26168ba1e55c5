package eventdoor_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// statsOf requests the statistics with a query, and checks the status of the reply.
func (s *stage) statsOf(query string, status int) (v wire.Stats) {
	s.Helper()
	synctest.Wait()
	w := httptest.NewRecorder()
	exchange.Recorded(s.T, s.server).ServeHTTP(w, httptest.NewRequestWithContext(s.Context(), "GET", "/v1/stats"+query, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &v); w.Code != status || err != nil {
		s.Fatalf("%s: %d %s: %v, want %d", query, w.Code, w.Body, err, status)
	}
	return v
}

// lossesIn counts the losses in all buckets.
func lossesIn(v wire.Stats) (n int) {
	for _, b := range v.Buckets {
		n += b.Lost
	}
	return n
}

// TestStatsOfADay checks that events of the last hour and day are still counted, in longer buckets.
func TestStatsOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &deafening{Forward: driver.Forward{Engine: quiet()}}
		s := open(t, engine)
		lose := func(id string) { engine.told(lockinfo.HistoryEvent{ID: id, Kind: lockinfo.HistoryLost, Name: "n"}) }
		lose("yesterday")
		time.Sleep(23 * time.Hour)
		lose("within the hour")
		time.Sleep(50 * time.Minute)
		lose("now")
		for query, want := range map[string]struct{ every, buckets, lost int }{
			"":                  {5000, 181, 1},
			"?span_ms=1":        {5000, 181, 1},
			"?span_ms=900000":   {5000, 181, 1},
			"?span_ms=900001":   {20_000, 181, 2},
			"?span_ms=3600000":  {20_000, 181, 2},
			"?span_ms=86400000": {480_000, 179, 3},
		} {
			v := s.statsOf(query, http.StatusOK)
			if int(v.EveryMS) != want.every || len(v.Buckets) != want.buckets || lossesIn(v) != want.lost || len(v.Losses) != want.lost {
				t.Errorf("%s: buckets of %d ms, %d of them, with %d losses; %d are listed; want %+v", query, v.EveryMS, len(v.Buckets), lossesIn(v), len(v.Losses), want)
			}
		}
		for _, query := range []string{"?span_ms=0", "?span_ms=-1", "?span_ms=86400001", "?span_ms=x", "?span_ms=", "?span_ms=1&span_ms=1", "?x=1", "?%zz"} {
			s.statsOf(query, http.StatusBadRequest)
		}
	})
}

// contended returns the names with the longest waits, with their figures.
func (s *stage) contended() (all []string) {
	s.Helper()
	for _, c := range s.stats().Contended {
		all = append(all, fmt.Sprint(c.Name, " ", c.Waits, " ", c.GaveUp, " ", c.WaitedMS, " ", c.LongestMS))
	}
	return all
}

// TestContended checks that the statistics have the names with the longest waits of the last hour,
// in sum, without the waits of standbys.
func TestContended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &deafening{Forward: driver.Forward{Engine: quiet()}}
		s := open(t, engine)
		n := 0
		wait := func(name string, kind lockinfo.HistoryKind, waited, ago time.Duration) {
			n++
			engine.told(lockinfo.HistoryEvent{ID: fmt.Sprint(n), Kind: kind, Name: name, Waited: waited, Ago: ago})
		}
		if got := s.contended(); got != nil {
			t.Errorf("at the start: %q", got)
		}
		time.Sleep(2 * time.Hour)
		wait("a", lockinfo.HistoryHandedOver, time.Minute, 0)
		wait("b", lockinfo.HistoryGaveUp, 50*time.Second, 0)
		wait("b", lockinfo.HistoryHandedOver, 20*time.Second, 40*time.Minute)
		wait("c", lockinfo.HistoryHandedOver, time.Hour, 70*time.Minute)        // too long ago
		wait("holdfast@server/x", lockinfo.HistoryHandedOver, 5*time.Minute, 0) // a reserved name, which no caller sees
		wait("d", lockinfo.HistoryAcquired, 0, 0)
		engine.told(lockinfo.HistoryEvent{ // a standby
			ID: "lead", Kind: lockinfo.HistoryHandedOver, Name: "lead", Waited: 50 * time.Minute,
			Holder: lockinfo.Holder{Labels: map[string]string{holdfast.LeadLabel: "1"}},
		})
		want := []string{"b 2 1 70000 50000", "a 1 0 60000 60000"}
		if got := s.contended(); !slices.Equal(got, want) {
			t.Errorf("contended: %q, want %q", got, want)
		}
		time.Sleep(30 * time.Minute)
		want = []string{"a 1 0 60000 60000", "b 1 1 50000 50000"}
		if got := s.contended(); !slices.Equal(got, want) {
			t.Errorf("after half an hour: %q, want %q", got, want)
		}
		time.Sleep(40 * time.Minute)
		if got := s.contended(); got != nil {
			t.Errorf("after an hour and more: %q", got)
		}
	})
}

// A remembering engine reports past events before the gap with which its feed begins.
type remembering struct {
	driver.Forward
	past []lockinfo.HistoryEvent
}

func (r *remembering) OnEvent(told func(lockinfo.HistoryEvent)) (stop func()) {
	for _, e := range r.past {
		told(e)
	}
	return r.Forward.OnEvent(told)
}

// TestStatsOfThePast checks that past events, which a feed has before the gap with which it begins,
// are counted at their times.
func TestStatsOfThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		past := []lockinfo.HistoryEvent{
			{ID: "1", Kind: lockinfo.HistoryAcquired, Name: "a", Ago: 10 * time.Minute},
			{ID: "2", Kind: lockinfo.HistoryLost, Name: "a", Ago: 9 * time.Minute},
			{ID: "3", Kind: lockinfo.HistoryHandedOver, Name: "b", Ago: time.Minute, Waited: time.Second},
		}
		s := open(t, &remembering{driver.Forward{Engine: quiet()}, past})
		v := s.stats()
		var with []string
		for i, b := range v.Buckets {
			if b.Acquired+b.Lost+b.HandedOver > 0 {
				with = append(with, fmt.Sprint(i, " ", b.AgoMS, " ", b.Gap))
			}
		}
		if got := strings.Join(with, ", "); len(v.Buckets) != 121 || got != "0 600000 false, 12 540000 false, 108 60000 false" {
			t.Fatalf("%d buckets, something in %s", len(v.Buckets), got)
		}
		if len(v.Losses) != 1 || len(v.Contended) != 1 || !v.Buckets[120].Gap || v.LossesAtLeast {
			t.Errorf("%d losses, %d contended names, %+v", len(v.Losses), len(v.Contended), v.Buckets[120])
		}
	})
}
