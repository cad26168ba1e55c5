package eventdoor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// quiet returns a store without one-time tokens, so that no server prunes it.
func quiet() driver.Engine {
	return driver.Forward{Engine: withHistory(), Without: driver.Capabilities{OneTime: true}}
}

// stats requests the statistics.
func (s *stage) stats() (v wire.Stats) {
	s.Helper()
	synctest.Wait() // until the events are reported
	w := httptest.NewRecorder()
	exchange.Recorded(s.T, s.server).ServeHTTP(w, httptest.NewRequestWithContext(s.Context(), "GET", "/v1/stats", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &v); w.Code != http.StatusOK || err != nil {
		s.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return v
}

// latest returns the present bucket, without its time.
func (s *stage) latest() wire.Bucket {
	s.Helper()
	all := s.stats().Buckets
	b := all[len(all)-1]
	b.AgoMS = 0
	return b
}

func (s *stage) want(want wire.Bucket) {
	s.Helper()
	if want.Waits == nil {
		want.Waits = []int{}
	}
	if got := s.latest(); fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("counted %+v, want %+v", got, want)
	}
}

// hold acquires a lock, and holds it until release is called.
func (s *stage) hold(name string, opts *holdfast.AcquireOptions) (release func()) {
	s.Helper()
	l, err := s.client.Acquire(s.Context(), name, opts)
	if err != nil {
		s.Fatal(err)
	}
	return func() { _ = l.Release(s.Context()) }
}

// TestStats checks that each event is counted by its kind in the bucket of its time, that each
// lease is counted by how long its client waited, and that the buckets have 15 minutes.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, quiet())
		if all := s.stats(); len(all.Buckets) != 1 || !all.Buckets[0].Gap || all.EveryMS != 5000 || all.LastID != "" {
			t.Errorf("at the start: %+v", all)
		}
		time.Sleep(5 * time.Second)
		s.use("a", "b")
		release := s.hold("c", nil)
		s.want(wire.Bucket{Acquired: 3, Released: 2, Waits: []int{3}})

		time.Sleep(5 * time.Second)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.hold("c", nil)()
		}()
		synctest.Wait()
		s.want(wire.Bucket{Queued: 1})
		time.Sleep(7 * time.Second)
		release()
		<-done
		s.want(wire.Bucket{HandedOver: 1, Released: 2, Waits: []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}) // 5 s to 10 s

		all := s.stats()
		if ago := []int64{all.Buckets[0].AgoMS, all.Buckets[3].AgoMS}; len(all.Buckets) != 4 || !slices.Equal(ago, []int64{17_000, 2_000}) {
			t.Errorf("%d buckets, %d: want 4, from 17 s to 2 s ago", len(all.Buckets), ago)
		}
		if all.BoundsMS[12] != 5000 || all.BoundsMS[13] != 10_000 || !slices.IsSorted(all.BoundsMS) {
			t.Errorf("bounds: %d", all.BoundsMS)
		}
		time.Sleep(20 * time.Minute)
		if all = s.stats(); len(all.Buckets) != 181 || all.Buckets[0].AgoMS != all.Buckets[180].AgoMS+900_000 {
			t.Errorf("%d buckets, the first of %d ms ago", len(all.Buckets), all.Buckets[0].AgoMS)
		}
		for i, b := range all.Buckets {
			if b.Acquired+b.Released+b.HandedOver+b.Queued+len(b.Waits) > 0 || b.Gap {
				t.Errorf("bucket %d still has %+v", i, b)
			}
		}
	})
}

// TestStatsOfLosses checks that losses are counted by kind, and that the latest losses are listed
// as long as they count.
func TestStatsOfLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, quiet())
		time.Sleep(5 * time.Second)
		acquire := func(name string, ttl time.Duration) (lockinfo.LeaseID, uint64) {
			id := lockinfo.NewLeaseID()
			reply, err := s.engine.Acquire(t.Context(), driver.AcquireRequest{Name: name, LeaseID: id, TTL: ttl})
			if err != nil || reply.Outcome != driver.Granted {
				t.Fatal(reply, err)
			}
			return id, reply.Token
		}
		acquire("expired", time.Second)
		_, token := acquire("broken", time.Minute)
		if _, err := s.engine.(driver.Breaker).Break(t.Context(), driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: "broken", Token: token, Author: "ada"}); err != nil {
			t.Fatal(err)
		}
		id, _ := acquire("lost", time.Minute)
		if err := s.engine.Release(t.Context(), driver.ReleaseRequest{Name: "lost", LeaseID: id, Lost: true}); err != nil {
			t.Fatal(err)
		}
		acquire("holdfast@server/own", time.Minute) // the server's own lease, which no caller sees
		acquire(driver.ProbePrefix+"1", time.Minute)
		time.Sleep(2 * time.Second)
		acquire("expired", time.Minute) // notices that the lease expired a second ago
		s.want(wire.Bucket{Acquired: 4, Expired: 1, Lost: 1, Broken: 1, Waits: []int{4}})
		all := s.stats()
		var losses []string
		for _, e := range all.Losses {
			losses = append(losses, fmt.Sprint(e.Event, " ", e.Name, " ", *e.AgoMS))
		}
		if want := "[broken broken 2000 lost lost 2000 expired expired 1000]"; fmt.Sprint(losses) != want {
			t.Errorf("losses %s, want %s", losses, want)
		}
		v, some := s.read("", all.LastID), s.read("?prefix=h", all.LastID)
		s.use("next")
		v.want("acquired next", "released next") // no event twice, and no gap
		acquire(driver.ProbePrefix+"2", time.Minute)
		v.want("acquired next", "released next")
		some.want() // a reader of some names does not get the shared chunks
		time.Sleep(17 * time.Minute)
		if all = s.stats(); len(all.Losses) > 0 {
			t.Errorf("after 17 minutes: %v", all.Losses)
		}
	})
}

// TestStatsAreBounded checks that few losses and buckets are kept, however many events there are.
func TestStatsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &deafening{Forward: driver.Forward{Engine: quiet()}}
		s := open(t, engine)
		for i := range 30 {
			engine.told(lockinfo.HistoryEvent{ID: fmt.Sprint(i), Kind: lockinfo.HistoryLost, Name: fmt.Sprint("n", i)})
		}
		engine.told(lockinfo.HistoryEvent{ID: "29", Kind: lockinfo.HistoryLost, Name: "n29"})                    // a second time
		engine.told(lockinfo.HistoryEvent{ID: "old", Kind: lockinfo.HistoryReleased, Name: "n", Ago: time.Hour}) // before the start
		engine.told(lockinfo.HistoryEvent{ID: "odd", Kind: lockinfo.HistoryKind(77), Name: "n"})
		if all := s.stats(); len(all.Losses) != 20 || all.Losses[0].Name != "n10" || all.Buckets[0].Lost != 30 || all.Buckets[0].Released != 0 {
			t.Errorf("%d losses, the first %+v, %+v", len(all.Losses), all.Losses[0], all.Buckets)
		}
		time.Sleep(time.Minute)
		engine.told(lockinfo.HistoryEvent{ID: "late", Kind: lockinfo.HistoryHandedOver, Name: "n", Ago: 31 * time.Second, Waited: 48 * time.Hour})
		all := s.stats().Buckets
		if late := all[len(all)-8]; late.HandedOver != 1 || len(late.Waits) != 20 || late.Waits[19] != 1 {
			t.Errorf("what came late: %+v", all)
		}
	})
}

// TestStatsShowGaps checks that a gap marks its bucket. If there were no events between two gaps,
// all buckets between them are marked too.
func TestStatsShowGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &deafening{Forward: driver.Forward{Engine: quiet()}}
		s := open(t, engine)
		gaps := func() (all []int) {
			for i, b := range s.stats().Buckets {
				if b.Gap {
					all = append(all, i)
				}
			}
			return all
		}
		s.use("a")
		time.Sleep(10 * time.Second)
		engine.told(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap}) // disconnected
		time.Sleep(20 * time.Second)
		if got := gaps(); !slices.Equal(got, []int{0, 2}) {
			t.Errorf("gaps in %d, want the first and that in which the engine was cut off", got)
		}
		engine.told(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap}) // connected again
		s.use("a")
		time.Sleep(10 * time.Second)
		engine.told(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
		if got := gaps(); !slices.Equal(got, []int{0, 2, 3, 4, 5, 6, 8}) {
			t.Errorf("gaps in %d", got)
		}
		time.Sleep(time.Hour)
		engine.told(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
		if got := gaps(); len(got) != 181 {
			t.Errorf("%d gaps after an hour without a word", len(got))
		}
	})
}

// TestStatsRefused checks that the server refuses the statistics to callers that may not read all
// names, and to all callers without history.
func TestStatsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(s *stage, status int, code string) {
			w := httptest.NewRecorder()
			exchange.Recorded(t, s.server).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/v1/stats", nil))
			if w.Code != status || !bytes.Contains(w.Body.Bytes(), []byte(code)) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, status, code)
			}
		}
		s := open(t, quiet())
		s.who.Prefixes = []string{"app/"}
		ask(s, http.StatusForbidden, "not-permitted")
		s.who = caller.Caller{Name: "bob", Rights: caller.All &^ caller.Read}
		ask(s, http.StatusForbidden, "not-permitted")
		ask(open(t, mem.New(nil)), http.StatusNotImplemented, "history=1")
		s.who = caller.Caller{Name: "ann", Rights: caller.Read}
		s.server.Drain()
		if w := httptest.NewRecorder(); true { // requests of callers are answered until the end
			s.server.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "GET", "/v1/stats", nil))
			if w.Code != http.StatusOK {
				t.Errorf("a server that drains: %d %s", w.Code, w.Body)
			}
		}
	})
}
