package systest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

const (
	failoverTTL     = 3 * time.Second
	failoverRequest = time.Second // how long a request may take
	failoverWorkers = 64
	failoverNames   = 16
)

// A shift is a group of workers. They take turns at some locks and write to a fenced resource under
// each, whatever happens to the servers.
type shift struct {
	t      *testing.T
	names  []string
	client *holdfast.Client
	gate   *fence.Gate
	stop   context.CancelFunc
	all    sync.WaitGroup

	acquired atomic.Int64 // leases
	accepted atomic.Int64 // writes
	refused  atomic.Int64 // writes of stale holders
	behind   atomic.Int64 // of those, writes under a lease that was still valid
	lost     atomic.Int64 // leases that ended with ErrLost

	mu      sync.Mutex           // guards the rest
	highest map[string]uint64    // the greatest token of which a write was accepted
	resumed map[string]time.Time // when the name was first acquired after the failover

	failovers []time.Duration // how long each took; of the test's goroutine
	slowest   time.Duration   // from the fault until the first acquire
}

func newShift(t *testing.T, engine driver.Engine) *shift {
	s := &shift{t: t, gate: traffic.NewGate(t), highest: map[string]uint64{}, resumed: map[string]time.Time{}}
	for i := range failoverNames {
		s.names = append(s.names, fmt.Sprintf("shift/%d", i))
	}
	s.client = newClient(t, engine, &holdfast.Options{TTL: failoverTTL, RequestTimeout: failoverRequest})
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	for i := range failoverWorkers {
		s.all.Go(func() {
			for ctx.Err() == nil {
				s.turn(ctx, s.names[i%failoverNames])
			}
		})
	}
	t.Cleanup(func() { s.end() })
	return s
}

// end stops the workers and waits for them.
func (s *shift) end() {
	s.stop()
	s.all.Wait()
}

// turn acquires a lock once and works under it.
func (s *shift) turn(ctx context.Context, name string) {
	lease, err := s.client.Acquire(ctx, name, nil)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, holdfast.ErrUnavailable) {
			s.t.Errorf("acquire: %v", err)
		}
		return
	}
	s.acquired.Add(1)
	s.mu.Lock()
	if _, ok := s.resumed[name]; !ok {
		s.resumed[name] = time.Now()
	}
	s.mu.Unlock()
	told := make(chan time.Time, 1)
	context.AfterFunc(lease.Context(), func() { told <- time.Now() })
	for range 5 {
		s.write(lease)
		select {
		case <-time.After(5 * time.Millisecond):
		case <-lease.Context().Done():
		}
	}
	err = lease.Release(context.WithoutCancel(ctx))
	if errors.Is(err, holdfast.ErrLost) {
		s.lost.Add(1)
	}
	if late := (<-told).Sub(lease.Deadline()); late > 100*time.Millisecond {
		s.t.Errorf("a holder was notified of the end %s after its deadline", late)
	}
}

// write writes to the resource, which refuses the tokens of stale holders.
func (s *shift) write(l *holdfast.Lease) {
	if err := s.gate.Advance(l.Name(), l); err != nil {
		s.refused.Add(1)
		if l.Valid() {
			s.behind.Add(1)
		}
		return
	}
	s.accepted.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.highest[l.Name()] = max(s.highest[l.Name()], l.Token())
}

// goesOn waits until every one of names was acquired after the new master took over, at since. It
// fails the test if the first acquire came later than twice the failover's time after the fault, or
// the last more than a TTL after that. Each lock may have been held at the fault by a lease that
// the new master has and the holder cannot release: such a lease must first expire.
func (s *shift) goesOn(what string, names []string, since time.Time, failover time.Duration) {
	s.t.Helper()
	s.mu.Lock()
	clear(s.resumed)
	s.mu.Unlock()
	var first, last time.Time
	eventually(s.t, "work goes on", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		first, last = time.Time{}, time.Time{}
		for _, name := range names {
			at, ok := s.resumed[name]
			if !ok {
				return false
			}
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		return true
	})
	s.t.Logf("%s: another master after %s, work on every lock goes on after %s to %s", what, failover, failover+first.Sub(since), failover+last.Sub(since))
	s.failovers, s.slowest = append(s.failovers, failover), max(s.slowest, failover+first.Sub(since))
	if took := failover + first.Sub(since); took > max(2*failover, failoverTTL+failoverRequest) {
		s.t.Errorf("work went on after %s, the failover took %s", took, failover)
	}
	if took := failover + last.Sub(since); took > 2*failover+failoverTTL {
		s.t.Errorf("work on the last lock went on after %s, the failover took %s", took, failover)
	}
}

func (s *shift) report(fault string) {
	s.t.Helper()
	report.Row(s.t, fault, "every holder told by its deadline, tokens strict, work goes on within twice the failover",
		"%d failovers of %s to %s: work went on after %s at most; %d leases, %d of them lost; %d writes accepted, %d refused, %d of them of valid leases",
		len(s.failovers), slices.Min(s.failovers).Round(time.Millisecond), slices.Max(s.failovers).Round(time.Millisecond), s.slowest.Round(time.Millisecond),
		s.acquired.Load(), s.lost.Load(), s.accepted.Load(), s.refused.Load(), s.behind.Load())
}

// TestSentinelFailover checks failovers, which sometimes lose leases. Every holder learns of the
// loss in time, the resource sees growing tokens, and work soon continues.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	onEachEngine(t, sentinelFailover)
}

func sentinelFailover(t *testing.T, by traffic.Kind) {
	t.Parallel()
	g := testsvc.Sentinel(t)
	s := newShift(t, openBy(t, by, g.URL))
	for i := range soak.Count(3, 20) {
		eventually(t, "everybody works", func() bool { return s.acquired.Load() > failoverWorkers })
		old := g.Master()
		began := time.Now()
		kill := i%2 == 0
		if kill {
			old.Kill()
		} else {
			old.Stop()
		}
		eventually(t, "another master", func() bool { return g.Master() != old })
		s.goesOn(fmt.Sprintf("failover %d (%s)", i+1, how(kill)), s.names, time.Now(), time.Since(began))
		if kill {
			old.Restart()
		} else {
			old.Cont()
		}
		g.AwaitReplicas()
	}
	s.end()
	s.check()
	s.report(of(by) + "failover of the master that sentinels watch, by KILL and STOP")
}

func how(kill bool) string {
	if kill {
		return "KILL"
	}
	return "STOP"
}

// check fails the test unless the next lease of every name has a greater token than all that the
// resource accepted.
func (s *shift) check() {
	s.t.Helper()
	for _, name := range s.names {
		lease, err := s.client.Acquire(s.t.Context(), name, nil)
		if errors.Is(err, holdfast.ErrUnavailable) { // retry once, as workers do: its batch may have had a request to the stopped node
			lease, err = s.client.Acquire(s.t.Context(), name, nil)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if lease.Token() <= s.highest[name] {
			s.t.Errorf("%s: token %d after %d", name, lease.Token(), s.highest[name])
		}
		if err := lease.Release(s.t.Context()); err != nil && !errors.Is(err, holdfast.ErrOutcomeUnknown) {
			s.t.Error(err)
		}
	}
}

func TestClusterFailover(t *testing.T) {
	t.Parallel()
	onEachEngine(t, clusterFailover)
}

func clusterFailover(t *testing.T, by traffic.Kind) {
	t.Parallel()
	c := testsvc.RedisCluster(t)
	s := newShift(t, openBy(t, by, c.URL))
	owned := map[int][]string{}
	for _, name := range s.names {
		owned[c.Owner(name)] = append(owned[c.Owner(name)], name)
	}
	for i := range 2 {
		eventually(t, "everybody works", func() bool { return s.acquired.Load() > failoverWorkers })
		began := time.Now()
		if i == 0 {
			c.Masters[i].Kill()
		} else {
			c.Masters[i].Stop()
		}
		eventually(t, "its replica takes over", func() bool { return c.Replicas[i].IsMaster() })
		s.goesOn(fmt.Sprintf("failover of a node (%s)", how(i == 0)), owned[i], time.Now(), time.Since(began))
	}
	s.end()
	s.check()
	s.report(of(by) + "failover of a node of a cluster, by KILL and STOP")
	c.Masters[1].Cont()
}

// TestHungNodeDelaysNoOther checks that a node that hangs costs no leases on other nodes.
// INVARIANT I9.
func TestHungNodeDelaysNoOther(t *testing.T) {
	t.Parallel()
	onEachEngine(t, hungNodeDelaysNoOther)
}

func hungNodeDelaysNoOther(t *testing.T, by traffic.Kind) {
	t.Parallel()
	const each = 20
	c := testsvc.RedisCluster(t, "--cluster-require-full-coverage", "no")
	client := newClient(t, openBy(t, by, c.URL), &holdfast.Options{TTL: failoverTTL, RequestTimeout: 10 * time.Second})
	var others []*holdfast.Lease
	hung := 0
	fresh := namesElsewhere(c)
	for i := 0; len(others) < each*len(c.Masters[1:]); i++ {
		name := fmt.Sprintf("held/%d", i)
		lease, err := client.TryAcquire(t.Context(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.Owner(name) == 0 {
			hung++
		} else {
			others = append(others, lease)
		}
	}
	c.Replicas[0].Kill() // so that no replica takes over
	c.Masters[0].Stop()
	hungFor := soak.For(6*time.Second, time.Minute)
	end := time.Now().Add(hungFor)
	cycles := 0
	for ; time.Now().Before(end); cycles++ {
		for _, l := range others {
			if !l.Valid() {
				t.Fatalf("%s was lost: %v", l.Name(), context.Cause(l.Context()))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		lease, err := client.TryAcquire(ctx, fresh[cycles%len(fresh)], nil)
		if err != nil {
			t.Fatalf("a lock on a node that is well: %v", err)
		}
		if err := lease.Release(ctx); err != nil {
			t.Fatalf("release on a node that is well: %v", err)
		}
		cancel()
		time.Sleep(50 * time.Millisecond) // while the node hangs
	}
	report.Row(t, of(by)+"SIGSTOP of a node of a cluster", "leases on the other nodes lose nothing",
		"a node with %d leases hung for %s: %d of %d leases of the others live, %d times others were acquired", hung, hungFor, len(others), len(others), cycles)
	c.Masters[0].Cont()
}

// namesElsewhere returns names that are not on the first master.
func namesElsewhere(c *testsvc.Cluster) (names []string) {
	for i := 0; len(names) < 20; i++ {
		if name := fmt.Sprintf("fresh/%d", i); c.Owner(name) != 0 {
			names = append(names, name)
		}
	}
	return names
}
