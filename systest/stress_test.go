package systest

import (
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// stressFor is how long the randomised stress of each engine takes.
var stressFor = flag.Duration("stress", 10*time.Second, "duration of the randomised stress of each engine")

const (
	stressTTL     = time.Second
	stressCrews   = 4
	stressWorkers = 8
	crashEvery    = 1500 * time.Millisecond
)

// INVARIANT I1: whatever workers do with locks of every mode, and however
// their processes die, no two incompatible leases are live at once, tokens
// grow, and nothing is left.
func TestStress(t *testing.T) {
	for _, engine := range []string{"memory", "sqlite", "redis"} {
		t.Run(engine, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d, for %s", seed, *stressFor)
			switch engine {
			case "memory":
				stressInMemory(t, seed)
			case "sqlite":
				url := "sqlite://" + t.TempDir() + "/locks.db"
				stressProcesses(t, url, seed)
				e, err := openStore(t.Context(), url)
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

// stressProcesses lets crews work on a store, kills one of them now and then
// and starts another instead, and checks what they saw.
func stressProcesses(t *testing.T, url string, seed uint64) {
	var h history
	var all sync.WaitGroup // one goroutine per crew, which reads its reports
	end := time.Now().Add(*stressFor)
	start := func() *crew {
		seed++
		c := startCrew(t, job{Job: "stress", Store: url, Workers: stressWorkers, For: time.Until(end), Seed: seed})
		c.begin()
		all.Go(func() { h.follow(t, c) })
		return c
	}
	crews := make([]*crew, stressCrews)
	for i := range crews {
		crews[i] = start()
	}
	crashes := 0
	for time.Until(end) > crashEvery+stressTTL {
		time.Sleep(crashEvery)
		i := rand.IntN(len(crews))
		h.crash(crews[i])
		crews[i] = start()
		crashes++
	}
	all.Wait()
	t.Logf("%d crashes", crashes)
	h.check(t)
}

// stressInMemory does the same in one process: instead of dying, a crew is cut
// off from its store.
func stressInMemory(t *testing.T, seed uint64) {
	var h history
	engine, err := openStore(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(*stressFor)
	var all sync.WaitGroup // one goroutine per crew
	start := func() *severed {
		seed++
		s := &severed{inner: engine}
		ctx, stop := context.WithCancel(t.Context())
		s.stop = stop
		j := job{Workers: stressWorkers, For: time.Until(end), Seed: seed, out: func(v any) { h.note(v.(span)) }}
		all.Go(func() {
			defer stop()
			if err := stressOn(ctx, s, j); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	crews := make([]*severed, stressCrews)
	for i := range crews {
		crews[i] = start()
	}
	cuts := 0
	for time.Until(end) > crashEvery+stressTTL {
		time.Sleep(crashEvery)
		i := rand.IntN(len(crews))
		crews[i].cut()
		crews[i] = start()
		cuts++
	}
	all.Wait()
	t.Logf("%d cuts", cuts)
	h.check(t)
	checkNothingLeft(t, engine)
}

// checkNothingLeft fails unless, as soon as the leases of the dead are over,
// nobody holds or waits for anything.
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

// checkKeys fails if the server has keys but those that the documentation
// says stay for a while: last tokens, and lease IDs that were called off.
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

// follow notes what a crew reports until it ends.
func (h *history) follow(t *testing.T, c *crew) {
	for c.out.Scan() {
		var s span
		var failed crewError
		if json.Unmarshal(c.out.Bytes(), &failed); failed.Failed != "" {
			t.Errorf("a crew failed: %s", failed.Failed)
			return
		}
		if err := json.Unmarshal(c.out.Bytes(), &s); err != nil {
			return // a line that was cut off when the crew died
		}
		s.crew = c
		h.note(s)
	}
}
