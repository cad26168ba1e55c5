package systest

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/systest/check"
	"github.com/holdfast-locks/holdfast/systest/fault"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

const (
	stressCrews   = 4
	stressWorkers = 8
	crashEvery    = 1500 * time.Millisecond
)

// stressFor returns how long the stress of an engine takes.
func stressFor() time.Duration { return soak.For(10*time.Second, 2*time.Minute) }

// TestStress checks that whatever workers do with locks of every mode, and however their processes
// die, no two incompatible leases are live at once, tokens grow, and nothing is left behind.
// INVARIANT I1.
func TestStress(t *testing.T) {
	for _, engine := range []string{"memory", "sqlite", "redis"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d, for %s", seed, stressFor())
			switch engine {
			case "memory":
				stressInMemory(t, seed)
			case "sqlite":
				url := "sqlite://" + t.TempDir() + "/locks.db"
				stressProcesses(t, url, seed)
				e, err := traffic.Open(t.Context(), traffic.Redislock, url)
				if err != nil {
					t.Fatal(err)
				}
				checkNothingLeft(t, e)
				_ = e.Close()
			case "redis":
				s := newStore(t)
				stressProcesses(t, s.server.URL, seed)
				checkNothingLeft(t, s.engine)
				s.checkKeys(t)
			}
		})
	}
}

// stressProcesses lets crews work on a store, and checks what they saw. At intervals it kills a
// crew and starts another.
func stressProcesses(t *testing.T, url string, seed uint64) {
	var h check.Spans
	var all sync.WaitGroup // one goroutine per crew, which reads its reports
	end := time.Now().Add(stressFor())
	start := func() *traffic.Crew {
		seed++
		c := traffic.Start(t, traffic.Job{Job: "stress", Store: url, Workers: stressWorkers, For: time.Until(end), Seed: seed})
		c.Begin()
		all.Go(func() { followSpans(&h, c) })
		return c
	}
	crews := make([]*traffic.Crew, stressCrews)
	for i := range crews {
		crews[i] = start()
	}
	crashes := 0
	for time.Until(end) > crashEvery+traffic.StressTTL {
		time.Sleep(crashEvery)
		i := rand.IntN(len(crews))
		h.Died(crews[i])
		crews[i].Kill()
		crews[i] = start()
		crashes++
	}
	all.Wait()
	reportStress(t, crashes, h.Check(t))
}

// stressInMemory does the same in one process: instead of being killed, a crew is cut off from its
// store.
func stressInMemory(t *testing.T, seed uint64) {
	var h check.Spans
	engine, err := traffic.Open(t.Context(), traffic.Redislock, "memory:")
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(stressFor())
	var all sync.WaitGroup // one goroutine per crew
	start := func() (cut func()) {
		seed++
		s := fault.Sever(engine)
		ctx, stop := context.WithCancel(t.Context())
		j := traffic.Job{Workers: stressWorkers, For: time.Until(end), Seed: seed, Out: func(v any) { h.Note(s, v.(check.Span)) }}
		all.Go(func() {
			defer stop()
			if err := traffic.StressOn(ctx, s, j); err != nil {
				t.Error(err)
			}
		})
		return func() {
			s.Cut()
			// The holders have time to learn that their leases are lost.
			time.AfterFunc(2*traffic.StressTTL, stop)
		}
	}
	crews := make([]func(), stressCrews)
	for i := range crews {
		crews[i] = start()
	}
	cuts := 0
	for time.Until(end) > crashEvery+traffic.StressTTL {
		time.Sleep(crashEvery)
		i := rand.IntN(len(crews))
		crews[i]()
		crews[i] = start()
		cuts++
	}
	all.Wait()
	reportStress(t, cuts, h.Check(t))
	checkNothingLeft(t, engine)
}

func reportStress(t *testing.T, crashes int, seen string) {
	t.Helper()
	report.Row(t, "random stress of all modes, with crashes: "+path.Base(t.Name()), "0 overlaps, nothing left", "%s: %d crashes; %s", stressFor(), crashes, seen)
}

// checkNothingLeft fails unless all leases and places are gone as soon as the leases of dead
// holders have expired.
func checkNothingLeft(t *testing.T, e driver.Engine) {
	t.Helper()
	eventually(t, "no lease and no place is left", func() bool {
		for lock, err := range e.(driver.Lister).List(t.Context(), "") {
			if err != nil || len(lock.Holders) > 0 || lock.QueueLength > 0 {
				return false
			}
		}
		return true
	})
}

// checkKeys fails if the server has keys other than those that the documentation says stay for a
// while: last tokens, and cancelled lease IDs.
func (s *store) checkKeys(t *testing.T) {
	t.Helper()
	keys, err := s.do(t, "KEYS", "*").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if !strings.Contains(key, "}:fence:") && !strings.Contains(key, "}:cancelled:") {
			t.Errorf("key %q is left", key)
		}
	}
}

// followSpans records what a crew reports until it ends.
func followSpans(h *check.Spans, c *traffic.Crew) {
	c.Follow(func(report []byte) bool {
		var s check.Span
		if err := json.Unmarshal(report, &s); err != nil {
			return false
		}
		h.Note(c, s)
		return true
	})
}
