package demo

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A stage is a store with a server and a fleet.
type stage struct {
	engine *mem.Engine
	fleet  *Fleet

	mu      sync.Mutex
	events  []lockinfo.HistoryEvent
	answers map[string]int // by path and status
}

// perform runs a fleet for a time, and calls look every quarter of a second. It must run in a
// bubble of synctest.
func perform(t *testing.T, seed uint64, last time.Duration, look func(*stage)) *stage {
	t.Helper()
	s := &stage{engine: mem.New(&mem.Options{History: true}), answers: map[string]int{}}
	deaf := s.engine.OnEvent(func(e lockinfo.HistoryEvent) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	})
	srv, err := server.New(s.engine, &server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.fleet = Start(s.engine, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := &kept{header: w.Header(), status: 200}
		srv.ServeHTTP(k, r)
		s.mu.Lock()
		s.answers[fmt.Sprint(r.URL.Path, " ", k.status)]++
		s.mu.Unlock()
		w.WriteHeader(k.status)
		_, _ = w.Write(k.body.Bytes())
	}), seed)
	for began := time.Now(); time.Since(began) < last; time.Sleep(250 * time.Millisecond) {
		look(s)
	}
	deaf() // events of the end do not count
	began := time.Now()
	s.fleet.Stop()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the fleet took %s to end", took)
	}
	if err := srv.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return s
}

// TestFleet checks that all that the page can show occurs within a few minutes, and that only the
// person holds a lock after the fleet has ended.
func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]int{}
		s := perform(t, 1, 4*time.Minute, func(s *stage) { s.look(t, seen) })
		for _, e := range s.events {
			seen[e.Kind.String()]++
			if e.Kind == lockinfo.HistoryBroken && strings.HasPrefix(e.Author, "nora@") && e.Reason != "" {
				seen["broken by somebody who says why"]++
			}
		}
		for answer, n := range s.answers {
			seen[answer] += n
		}
		for entry, err := range s.engine.ListRecords(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			seen["done: "+strings.Split(entry.Name, "/")[0]]++
		}
		for _, want := range []string{
			"a person's", "kept closed", "3 of 5 permits", "all of 2 permits", "two readers", "a queue of two", "the stuck report",
			"a chain of three", "a cycle of two", "in progress", "a schedule", "several names",
			"broken by somebody who says why", lockinfo.HistoryExpired.String(), lockinfo.HistoryQueued.String(), lockinfo.HistoryHandedOver.String(),
			"/v1/onetime 201", "/v1/onetime/redeem 200", "/v1/onetime/redeem 410", "/v1/onetime/revoke 200",
			"done: mail", "done: import", "done: jobs",
		} {
			if seen[want] == 0 {
				t.Errorf("there was never: %s", want)
			}
		}
		t.Log(seen)
		s.wantNobodyElse(t)
	})
}

// look counts what can be seen now.
func (s *stage) look(t *testing.T, seen map[string]int) {
	t.Helper()
	holds, waits := map[string][]string{}, map[string]string{} // the names that each process holds; the name that it waits for
	for listed, err := range s.engine.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.engine.Inspect(t.Context(), listed.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range l.Holders {
			who := fmt.Sprint(h.Holder.Host, h.Holder.PID)
			holds[who] = append(holds[who], l.Name)
			note(seen, "a person's", h.Holder.Person)
			note(seen, "kept closed", h.Released)
			note(seen, "in progress", h.Holder.Once)
		}
		for _, w := range l.Queue {
			waits[fmt.Sprint(w.Holder.Host, w.Holder.PID)] = l.Name
		}
		note(seen, "3 of 5 permits", l.Mode.Limit() == 5 && len(l.Holders) == 3)
		note(seen, "all of 2 permits", l.Mode.Limit() == 2 && len(l.Holders) == 2)
		note(seen, "two readers", l.Mode == lockinfo.Shared && len(l.Holders) > 1)
		note(seen, "a queue of two", len(l.Queue) > 1)
		note(seen, "the stuck report", l.Name == report && len(l.Queue) == 2 && l.Holders[0].Since > time.Minute)
		note(seen, "a schedule", strings.HasSuffix(l.Name, "@schedule"))
	}
	for _, names := range holds {
		note(seen, "several names", len(names) > 2)
	}
	blockedBy := func(who string) string { // the process that blocks who
		for other, names := range holds {
			if waits[who] != "" && slices.Contains(names, waits[who]) {
				return other
			}
		}
		return ""
	}
	for who := range waits {
		first := blockedBy(who)
		second := blockedBy(first)
		note(seen, "a cycle of two", second == who)
		note(seen, "a chain of three", second != "" && second != who)
	}
}

func note(seen map[string]int, what string, is bool) {
	if is {
		seen[what]++
	}
}

// wantNobodyElse checks that a fleet that has ended has released all locks but the person's. It
// waits for minimum holds and TTLs to pass.
func (s *stage) wantNobodyElse(t *testing.T) {
	t.Helper()
	time.Sleep(time.Minute)
	for l, err := range s.engine.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range l.Holders {
			if !h.Holder.Person {
				t.Errorf("%s is still held by %v", l.Name, h.Holder)
			}
		}
		if len(l.Queue) > 0 {
			t.Errorf("%s: somebody still waits", l.Name)
		}
	}
}

// TestSameSeed checks that a seed always gives the same processes, which acquire the same names in
// the same order, and that another seed gives others.
func TestSameSeed(t *testing.T) {
	play := func(seed uint64) (names map[string][]string) {
		synctest.Test(t, func(t *testing.T) {
			names = map[string][]string{}
			for _, e := range perform(t, seed, time.Minute, func(*stage) {}).events {
				if e.Kind.Begins() && !strings.HasPrefix(e.Name, "onetime") { // the server acquires those
					who := fmt.Sprint(e.Holder.Host, " ", e.Holder.Program, " ", e.Holder.PID)
					names[who] = append(names[who], e.Name)
				}
			}
		})
		return names
	}
	first, again, other := play(7), play(7), play(8)
	for who, names := range first {
		common := min(len(names), len(again[who]))
		if common == 0 || !slices.Equal(names[:common], again[who][:common]) {
			t.Errorf("%s took %q, and then %q", who, names, again[who])
		}
		if other[who] != nil && !strings.HasPrefix(who, "desk-17") { // a person has no process ID
			t.Errorf("another seed has %s as well", who)
		}
	}
	if len(first) < 30 {
		t.Errorf("only %d processes have had a lock", len(first))
	}
}
