package systest

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// A load is what a server and this process had used at the call of begin.
type load struct {
	store      *store
	begun      time.Time
	cpu        float64
	memory     int // of the server
	heap       uint64
	goroutines int
}

// begin resets the server's statistics and returns the present load.
func begin(t *testing.T, s *store) load {
	t.Helper()
	s.do(t, "CONFIG", "RESETSTAT")
	return load{s, time.Now(), cpuTime(t, s.server), s.info(t, "memory", "used_memory"), inUse(), runtime.NumGoroutine()}
}

// info returns an integer field of INFO.
func (s *store) info(t *testing.T, section, field string) int {
	t.Helper()
	text, err := s.do(t, "INFO", section).ToString()
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(field + `:(\d+)`).FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("INFO %s has no %s", section, field)
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// inUse returns how many bytes this process uses after garbage collection.
func inUse() uint64 {
	var mem runtime.MemStats
	for range 3 {
		runtime.GC() // each collection halves stacks of which less than a quarter is used
	}
	runtime.ReadMemStats(&mem)
	return mem.HeapAlloc + mem.StackInuse
}

// rate returns the scripts per second, the share of a core that they took, and the time per script.
func (l load) rate(t *testing.T) (scripts, core float64, each time.Duration) {
	t.Helper()
	seconds := time.Since(l.begun).Seconds()
	scripts, core = float64(l.store.calls(t, "evalsha"))/seconds, (cpuTime(t, l.store.server)-l.cpu)/seconds
	return scripts, core, time.Duration(core / max(scripts, 1) * float64(time.Second)).Round(time.Microsecond)
}

// each returns how many bytes the client and the server use for each of n.
func (l load) each(t *testing.T, n int) (client, server int) {
	t.Helper()
	return int(inUse()-l.heap) / n, (l.store.info(t, "memory", "used_memory") - l.memory) / n
}

// tooLong reports whether a script blocks the server for longer than most. The time depends on the
// machine, so only a soak judges it.
func tooLong(script, most time.Duration) bool { return soak.Long() && script > most }

// TestManyLeasesAreKept checks that many leases of one client need no goroutine each, and that the
// store gets their renewals in full batches.
func TestManyLeasesAreKept(t *testing.T) {
	n, ttl := soak.Count(5000, 1_000_000), soak.For(3*time.Second, time.Minute)
	s := newStore(t)
	client := newClient(t, openEngine(t, s.server.URL), nil)
	acquireMany(t, client, 1, ttl)[0].Release(t.Context()) // opens a connection
	before := begin(t, s)
	held := acquireMany(t, client, n, ttl)
	took := time.Since(before.begun)
	memory, stored := before.each(t, n)
	waitUntil(took, ttl/2) // until renewals are evenly spread
	l := begin(t, s)
	time.Sleep(ttl) // real leases in a real store
	scripts, core, script := l.rate(t)
	batch := s.engine.Capabilities().ExtendBatch()
	most := 1.2*float64(n)/float64(batch)/(ttl.Seconds()*0.29) + 5
	report.Row(t, fmt.Sprintf("one client with %d leases, TTL %s", n, ttl), "none is lost; renewals in full batches, scripts of 1 ms at most",
		"%d lost; taken in %s; %.1f scripts a second, %.1f %% of a core, %s each; %d bytes of the client and %d of the server for each lease, %d goroutines more",
		lostOf(held), took.Round(100*time.Millisecond), scripts, 100*core, script, memory, stored, l.goroutines-before.goroutines)
	if lost := lostOf(held); lost > 0 {
		t.Errorf("%d of %d leases are lost", lost, n)
	}
	if scripts > most {
		t.Errorf("%.1f scripts a second, want %.1f at most", scripts, most)
	}
	if tooLong(script, time.Millisecond) {
		t.Errorf("scripts take %s, want 1ms at most", script)
	}
	const slack = 20 // new connections, and batches under way
	if !within(5*time.Second, func() bool { return runtime.NumGoroutine() < before.goroutines+slack }) {
		t.Errorf("%d goroutines before, %d with %d leases", before.goroutines, runtime.NumGoroutine(), n)
	}
	if most := 700 + 2_000_000/n; memory > most && !underRace { // 2 MB are for batches and connections
		t.Errorf("a lease takes %d bytes of the client, want %d at most", memory, most)
	}
}

// waitUntil sleeps for the rest of d after took of it.
func waitUntil(took, d time.Duration) { time.Sleep(max(0, d-took)) }

// TestMultitudesWait checks many waiters, for one name or each for another. All keep their places
// and are served, with one request to acquire and one to release.
func TestMultitudesWait(t *testing.T) {
	for what, c := range map[string]struct{ names, each int }{
		"one name":   {1, soak.Count(500, 10_000)},
		"many names": {soak.Count(500, 100_000), 1},
	} {
		t.Run(what, func(t *testing.T) {
			n := c.names * c.each
			ttl := soak.For(4*time.Second, 30*time.Second)
			s := newStore(t)
			holder := newClient(t, openEngine(t, s.server.URL), nil)
			var waiting atomic.Int64
			client := newClient(t, openEngine(t, s.server.URL), &holdfast.Options{TTL: ttl, Observer: func(e holdfast.Event) {
				if e.Kind == holdfast.Waiting {
					waiting.Add(1)
				}
			}})
			joined := func(n int) {
				t.Helper()
				eventually(t, fmt.Sprint(n, " waiters have a place"), func() bool { return waiting.Load() >= int64(n) })
			}
			held := acquireMany(t, holder, c.names, time.Minute)
			before := begin(t, s)
			var all sync.WaitGroup
			var served atomic.Int64
			for i := range n {
				if i%1000 == 0 { // more at once would only wait for the client
					joined(i)
				}
				name := held[i%c.names].Name()
				all.Go(func() {
					lease, err := client.Acquire(context.Background(), name, nil)
					if err == nil {
						served.Add(1)
						err = lease.Release(context.Background())
					}
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			joined(n)
			join := time.Since(before.begun)
			memory, stored := before.each(t, n)
			l := begin(t, s)
			time.Sleep(ttl / 2)
			scripts, core, script := l.rate(t)
			pass := begin(t, s)
			const workers = 64
			for w := range workers {
				all.Go(func() {
					for i := w; i < len(held); i += workers {
						if err := held[i].Release(context.Background()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			took := time.Since(pass.begun)
			commands := float64(s.calls(t, "evalsha")) / float64(n)
			report.Row(t, fmt.Sprintf("%d names with %d waiters each, of one client", c.names, c.each), "all are served with one request to ask and one to release; scripts of 2 ms at most",
				"%d served; %s to join, %s to pass, %.2f requests each; while all wait %.1f scripts a second, %.1f %% of a core, %s each; %d bytes of the client and %d of the server each",
				served.Load(), join.Round(10*time.Millisecond), took.Round(10*time.Millisecond), commands, scripts, 100*core, script, memory, stored)
			if served.Load() != int64(n) {
				t.Errorf("%d of %d were served", served.Load(), n)
			}
			if commands > 2.2 {
				t.Errorf("%.2f requests for each turn, want one to ask and one to release", commands)
			}
			// The stack has 8 kB, because the frames of a wait take less than a quarter of 16 kB.
			if most := 13_000 + 5_000_000/n; memory > most && !underRace {
				t.Errorf("a waiter takes %d bytes of the client, want %d at most", memory, most)
			}
			if tooLong(script, 2*time.Millisecond) {
				t.Errorf("scripts take %s, want 2ms at most", script)
			}
		})
	}
}
