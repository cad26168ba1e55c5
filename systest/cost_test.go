package systest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// A meter counts the requests on a link, by operation.
type meter struct{ acquires, extends, releases, others atomic.Int64 }

func newMeter(l *link) *meter {
	m := &meter{}
	l.OnRequest(func(r faultproxy.Request) faultproxy.Action {
		switch l.store.opOf(r) {
		case acquire:
			m.acquires.Add(1)
		case extend:
			m.extends.Add(1)
		case release:
			m.releases.Add(1)
		case other:
			if r.Command() != "PING" { // the client library sends them periodically
				m.others.Add(1)
			}
		}
		return faultproxy.Action{}
	})
	return m
}

func (m *meter) String() string {
	return fmt.Sprintf("%d acquires, %d extends, %d releases, %d others", m.acquires.Load(), m.extends.Load(), m.releases.Load(), m.others.Load())
}

// stats returns how often the server has run each command.
func (s *store) stats(t *testing.T) map[string]int {
	t.Helper()
	info, err := s.do(t, "INFO", "commandstats").ToString()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, match := range regexp.MustCompile(`cmdstat_([^:]+):calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		if all[match[1]], err = strconv.Atoi(match[2]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// inScripts returns how many commands scripts have run since the statistics were reset.
func (s *store) inScripts(t *testing.T) (sum int) {
	t.Helper()
	for command, n := range s.stats(t) {
		if !slices.Contains([]string{"evalsha", "eval", "ping", "info"}, command) && !strings.Contains(command, "|") {
			sum += n
		}
	}
	return sum
}

// calls returns how often the server has run a command.
func (s *store) calls(t *testing.T, command string) int {
	t.Helper()
	return s.stats(t)[command]
}

func TestUncontendedCycleIsTwoRequests(t *testing.T) { onEachEngine(t, uncontendedCycleIsTwoRequests) }

func uncontendedCycleIsTwoRequests(t *testing.T, by traffic.Kind) {
	s := newStore(t)
	l := s.linkBy(t, by)
	client := l.client(t, nil)
	cycle := func(name string) {
		t.Helper()
		lease, err := client.Acquire(t.Context(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// Warm up: the client library opens its connections as they are needed. The engine subscribes
	// once, at the latest when a busy machine makes it hold a lock for more than a moment.
	s.waitOnce(t, client, newClient(t, s.engine, nil))
	for i := range 50 {
		cycle(fmt.Sprintf("warm/%d", i))
	}
	const cycles = 100
	m := newMeter(l)
	evalsha, eval := s.calls(t, "evalsha"), s.calls(t, "eval")
	for i := range cycles {
		cycle(fmt.Sprintf("cost/%d", i))
	}
	evalsha, eval = s.calls(t, "evalsha")-evalsha, s.calls(t, "eval")-eval
	t.Logf("%d cycles: %s; the server ran %d EVALSHA, %d EVAL", cycles, m, evalsha, eval)
	if m.acquires.Load() != cycles || m.releases.Load() != cycles || m.extends.Load() != 0 || m.others.Load() != 0 {
		t.Errorf("%d cycles cost %s, want one acquire and one release each", cycles, m)
	}
	if evalsha != 2*cycles || eval != 0 {
		t.Errorf("the server ran %d EVALSHA and %d EVAL, want %d and 0", evalsha, eval, 2*cycles)
	}
}

// TestRequestsTravelTogether checks that concurrent requests are sent in batches, and that each is
// granted its own lock.
func TestRequestsTravelTogether(t *testing.T) { onEachEngine(t, requestsTravelTogether) }

func requestsTravelTogether(t *testing.T, by traffic.Kind) {
	const clients, pairs = 64, 20
	s := newStore(t)
	l := s.linkBy(t, by)
	client := l.client(t, nil)
	l.Latency(2 * time.Millisecond)
	m := newMeter(l)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for range pairs {
				lease, err := client.Acquire(t.Context(), fmt.Sprint("together/", c), nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	each := float64(m.acquires.Load()+m.releases.Load()) / (clients * pairs)
	t.Logf("%d pairs: %s: %.2f requests for each", clients*pairs, m, each)
	if each > 0.5 {
		t.Errorf("%.2f requests for each pair, want 0.5 at most", each)
	}
}

// acquireMany acquires n locks concurrently.
func acquireMany(t *testing.T, client *holdfast.Client, n int, ttl time.Duration) []*holdfast.Lease {
	t.Helper()
	leases := make([]*holdfast.Lease, n)
	var all sync.WaitGroup
	const workers = 64
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				var err error
				if leases[i], err = client.Acquire(context.Background(), fmt.Sprintf("many/%d", i), &holdfast.AcquireOptions{TTL: ttl}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return leases
}

// lostOf counts the leases that have ended.
func lostOf(leases []*holdfast.Lease) (lost int) {
	for _, l := range leases {
		if !l.Valid() {
			lost++
		}
	}
	return lost
}

func TestHundredLeasesAreRenewedTogether(t *testing.T) {
	s := newStore(t)
	l := s.link(t)
	client := l.client(t, nil)
	const ttl, intervals = 1500 * time.Millisecond, 5
	leases := acquireMany(t, client, 100, ttl)
	m := newMeter(l)
	time.Sleep(intervals * ttl / 3) // real leases in a real store
	extends := m.extends.Load()
	t.Logf("100 leases, %d renewal intervals: %s", intervals, m)
	if lost := lostOf(leases); lost > 0 {
		t.Errorf("%d of 100 leases are lost", lost)
	}
	if extends < intervals-2 || extends > 2*intervals {
		t.Errorf("%d renewal requests in %d intervals, want about one each", extends, intervals)
	}
}
