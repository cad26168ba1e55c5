package systest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/check"
	"github.com/holdfast-locks/holdfast/systest/model/lease"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

const (
	historyCrews   = 4
	historyWorkers = 8 // of each crew
	historyNames   = 8
	historyTTL     = 300 * time.Millisecond
	historyHold    = 8 * time.Millisecond

	// stuckBound is how long a lease that has ended may still hold its name.
	stuckBound = 100 * time.Millisecond
)

// TestHistoryTimed checks that no holder is displaced before its deadline while clocks and data are
// correct and the network is not. INVARIANT I1.
func TestHistoryTimed(t *testing.T) { onEachEngine(t, historyTimed) }

func historyTimed(t *testing.T, by traffic.Kind) {
	r := runHistory(t, by, soak.For(1500*time.Millisecond, time.Minute), func(s *store, h *historyRun) {
		h.loseReplies(5)
		h.shake()
	})
	v := r.history.Check(t, lease.Model{Mode: lease.Timed, Linger: traffic.LocksLinger})
	accepted, refused := r.resource.Log.Check(t)
	stuck := r.checkStuck(t)
	report.Row(t, of(by)+"5 % of replies lost, jitter, slices, reordered connections, 32 clients, 8 names",
		"0 leases displaced before their deadline, 0 names stuck more than 100 ms after their last holder",
		"%s; %s; resource: %d writes, %d stale ones refused; %s", v, r.lost, accepted, refused, stuck)
}

// TestHistoryFenced checks that histories are legal whatever replies are lost. INVARIANT I2, I5,
// I6.
func TestHistoryFenced(t *testing.T) { onEachEngine(t, historyFenced) }

func historyFenced(t *testing.T, by traffic.Kind) {
	r := runHistory(t, by, soak.For(1500*time.Millisecond, time.Minute), func(s *store, h *historyRun) { h.loseReplies(10) })
	v := r.history.Check(t, lease.Model{Mode: lease.Fenced, Linger: traffic.LocksLinger})
	accepted, refused := r.resource.Log.Check(t)
	stuck := r.checkStuck(t)
	report.Row(t, of(by)+"10 % of replies lost (dropped, reset, black-holed), 32 clients, 8 names, 60 s",
		"0 illegal histories, 0 names stuck more than 100 ms after their last holder",
		"%s: %s; %s; resource: %d writes, %d stale ones refused; %s", r.took, v, r.lost, accepted, refused, stuck)
}

// TestHistoryCohorts checks the same for cohorts: the model knows the turns under one lease ID, and
// the tokens that a grant reserves. MaxWait may cancel acquires at any time.
func TestHistoryCohorts(t *testing.T) { onEachEngine(t, historyCohorts) }

func historyCohorts(t *testing.T, by traffic.Kind) {
	for _, m := range []lease.Model{
		{Mode: lease.Timed, Linger: traffic.LocksLinger, Reserve: driver.TokenRange},
		{Mode: lease.Fenced, Linger: traffic.LocksLinger, Reserve: driver.TokenRange},
	} {
		t.Run(m.Mode.String(), func(t *testing.T) {
			s := newStore(t)
			job := traffic.Job{Store: s.server.URL, By: by, Waits: true, Cohorts: true}
			length := soak.For(1500*time.Millisecond, time.Minute)
			r := runHistoryOn(t, s.engine, job, []*testsvc.Server{s.server}, length, func(h *historyRun) {
				if m.Mode == lease.Timed {
					h.loseReplies(5)
					h.shake()
					return
				}
				h.loseReplies(10)
				h.every(250*time.Millisecond, func(n int) {
					if n%3 == 2 {
						h.history.During("", func() { s.tell(t, "FLUSHALL") })
						return
					}
					name := fmt.Sprintf("lock-%d", n%historyNames)
					h.history.During(name, func() { s.tell(t, "DEL", name) })
				})
			})
			v := r.history.Check(t, m)
			turns := r.history.HandedOn()
			if turns == 0 {
				t.Error("no lease was handed on")
			}
			accepted, refused := r.resource.Log.Check(t)
			stuck := "not checked"
			if m.Mode == lease.Timed {
				stuck = r.checkStuck(t)
			}
			report.Row(t, of(by)+"cohorts, "+m.Mode.String()+": replies lost, jitter or deleted keys, 32 callers in 4 processes, 8 names",
				"0 illegal histories", "%s, %d turns handed on; %s; resource: %d writes, %d stale ones refused; %s",
				v, turns, r.lost, accepted, refused, stuck)
		})
	}
}

// TestHistoryFencedDataFaults checks the same while the store loses data again and again.
func TestHistoryFencedDataFaults(t *testing.T) { onEachEngine(t, historyFencedDataFaults) }

func historyFencedDataFaults(t *testing.T, by traffic.Kind) {
	faults := 0
	r := runHistory(t, by, soak.For(1500*time.Millisecond, time.Minute), func(s *store, h *historyRun) {
		h.loseReplies(10)
		h.every(250*time.Millisecond, func(n int) {
			faults++
			name := fmt.Sprintf("lock-%d", n%historyNames)
			switch n % 5 {
			case 0:
				h.history.During("", func() { s.tell(t, "FLUSHALL") })
			case 1, 2:
				h.history.During(name, func() { s.tell(t, "DEL", name) })
			case 3:
				h.history.During("", s.server.Restart)
			case 4:
				// The keys are evicted one after the other: for one name that is more than one
				// fault.
				h.history.During("", func() { h.history.During("", func() { s.evict(t) }) })
			}
		})
	})
	v := r.history.Check(t, lease.Model{Mode: lease.Fenced, Linger: traffic.LocksLinger})
	accepted, refused := r.resource.Log.Check(t)
	_, stuck := r.closings(t) // after a flush the store has forgotten cancels, so a late request may be granted
	report.Row(t, of(by)+"flush, DEL of the lock's key, restart empty, eviction, and 10 % of replies lost, 32 clients, 8 names",
		"0 illegal histories: tokens strict, stale extends and releases refused",
		"%d faults in %s: %s; %s; resource: %d writes, %d stale ones refused; %s", faults, r.took, v, r.lost, accepted, refused, stuck)
}

// onEachEngine runs a test on each engine for Redis.
func onEachEngine(t *testing.T, test func(*testing.T, traffic.Kind)) {
	for _, by := range traffic.Kinds {
		t.Run(string(by), func(t *testing.T) { test(t, by) })
	}
}

// of returns the prefix of a report's row: the engine's name, unless it is the usual engine.
func of(by traffic.Kind) string {
	if by == traffic.Redislock {
		return ""
	}
	return string(by) + ": "
}

// tell is do on a new connection, for a server that was restarted. It returns the reply as text.
func (s *store) tell(t *testing.T, words ...string) string {
	t.Helper()
	answer, err := s.server.Do(words...)
	if err != nil {
		t.Errorf("%v: %v", words, err)
	}
	return answer
}

// A historyRun is one run of crews that acquire locks, with all observations.
type historyRun struct {
	history  check.History
	resource *traffic.Resource
	losing   bool // replies are lost
	lost     *losses
	took     time.Duration

	links []*faultproxy.Proxy // one for each crew and master
	stop  chan struct{}       // closed when the crews are done
	all   sync.WaitGroup      // goroutines that end with stop
	sight []check.Sight       // leases that were seen to hold; valid after the run
	lines []check.Line        // the queues; valid after the run
	pause time.Duration       // the longest between two looks; valid after the run
}

// runHistory lets crews acquire locks for length while harm disturbs the network and the store, and
// collects what the crews saw.
func runHistory(t *testing.T, by traffic.Kind, length time.Duration, harm func(*store, *historyRun)) *historyRun {
	t.Helper()
	s := newStore(t)
	job := traffic.Job{Store: s.server.URL, By: by}
	return runHistoryOn(t, s.engine, job, []*testsvc.Server{s.server}, length, func(r *historyRun) { harm(s, r) })
}

// runHistoryOn is runHistory on any servers. The crews do the job through proxies in front of the
// masters, and looks inspects the store. If the job sets no engine, crews alternate between the
// engines. If it sets Servers, each crew uses another of them.
func runHistoryOn(t *testing.T, looks driver.Engine, job traffic.Job, masters []*testsvc.Server, length time.Duration, harm func(*historyRun)) *historyRun {
	t.Helper()
	r := &historyRun{resource: traffic.NewResource(t), lost: &losses{}, stop: make(chan struct{}), took: length}
	job.Job, job.Seed, job.Workers, job.Names, job.For = "locks", rand.Uint64(), historyWorkers, historyNames, length
	job.TTL, job.Hold, job.Resource = historyTTL, historyHold, r.resource.URL
	t.Logf("seed %d, for %s", job.Seed, length)
	crews := make([]*traffic.Crew, historyCrews)
	for i := range crews {
		own := job
		own.First, own.Via = i*historyWorkers, map[string]string{}
		for _, m := range masters {
			p := faultproxy.New(t, m.Addr)
			r.links = append(r.links, p)
			own.Via[m.Addr] = p.Addr()
		}
		if own.By == "" {
			own.By = kindOf(own.First)
		}
		if len(job.Servers) > 0 {
			own.Store, own.By = job.Servers[i%len(job.Servers)], traffic.Redislock
		}
		crews[i] = traffic.Start(t, own)
	}
	var following sync.WaitGroup // one goroutine per crew, which reads its reports
	for _, c := range crews {
		c.Begin()
		following.Go(func() {
			if !r.follow(c) {
				t.Error("a crew has not done its job")
			}
		})
	}
	r.all.Go(func() { r.watch(t, looks) })
	harm(r)
	following.Wait()
	close(r.stop)
	r.all.Wait()
	if r.losing && r.lost.asked.Load() == 0 {
		t.Error("no reply was one that could be lost")
	}
	return r
}

// follow records what a crew reports until it ends, and returns whether the crew did its job. Then
// its last report is not an operation.
func (r *historyRun) follow(c *traffic.Crew) (done bool) {
	c.Follow(func(line []byte) bool {
		var o check.Op
		if err := json.Unmarshal(line, &o); err != nil {
			return false
		}
		if done = o.Name == ""; !done {
			r.history.Note(o)
		}
		return true
	})
	return done
}

// every calls do at intervals until the crews' time is up, in the goroutine of the test.
func (r *historyRun) every(pause time.Duration, do func(n int)) {
	end := time.After(r.took)
	for n := 0; ; n++ {
		select {
		case <-time.After(pause):
			do(n)
		case <-end:
			return
		}
	}
}

// watch looks who holds each name, and who is queued, until the crews are done.
func (r *historyRun) watch(t *testing.T, looks driver.Engine) {
	for last := time.Now(); ; {
		r.pause, last = max(r.pause, time.Since(last)), time.Now()
		for n := range historyNames {
			name := fmt.Sprintf("lock-%d", n)
			at := check.Now()
			lock, err := looks.Inspect(t.Context(), name)
			if err != nil {
				continue // the store may be restarting
			}
			for _, h := range lock.Holders {
				r.sight = append(r.sight, check.Sight{Name: name, LeaseID: string(h.LeaseID), At: at})
			}
			if len(lock.Queue) > 1 {
				r.lines = append(r.lines, check.LineOf(lock))
			}
		}
		select {
		case <-r.stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// checkStuck fails t if a name was stuck, and returns figures for the report.
func (r *historyRun) checkStuck(t *testing.T) string {
	t.Helper()
	stuck, figures := r.closings(t)
	for _, s := range stuck {
		t.Errorf("%s is stuck: lease %.6s holds it still, %s after its end", s.Name, s.LeaseID, s.For)
		for _, o := range r.history.Ops() {
			if o.LeaseID == s.LeaseID {
				t.Logf("  client %d [%s, %s before] %s", o.Client, time.Duration(s.At-o.Call), time.Duration(s.At-o.Return), o)
			}
		}
	}
	return figures
}

// closings returns the names that were stuck for too long. figures describes how long names were
// held by leases without a holder.
func (r *historyRun) closings(t *testing.T) (tooLong []check.Closing, figures string) {
	t.Helper()
	stuck, abandoned, strangers := r.history.Closed(r.sight, traffic.LocksLinger)
	if len(r.sight) == 0 {
		t.Error("nobody was seen to hold a name")
	}
	if strangers > 0 {
		t.Errorf("%d times somebody unknown held a name", strangers)
	}
	for _, s := range stuck {
		if s.For > stuckBound+r.pause { // pauses of the machine are not the store's fault
			tooLong = append(tooLong, s)
		}
	}
	return tooLong, fmt.Sprintf("%d names stuck in %d looks, %s at worst, the longest pause between looks %s; %d acquires without an answer held a name after their callers gave up, for %s at worst",
		len(tooLong), len(r.sight), longest(stuck), r.pause.Round(time.Millisecond), len(abandoned), longest(abandoned))
}

func longest(closings []check.Closing) time.Duration {
	if len(closings) == 0 {
		return 0
	}
	return closings[0].For.Round(time.Millisecond)
}

// losses counts the replies that were lost.
type losses struct{ asked, dropped, reset, swallowed atomic.Int64 }

func (l *losses) String() string {
	return fmt.Sprintf("of %d replies %d dropped, %d reset, %d black-holed", l.asked.Load(), l.dropped.Load(), l.reset.Load(), l.swallowed.Load())
}

// loseReplies loses a percentage of the replies to scripts and to calls of functions, which are
// what the engines send.
func (r *historyRun) loseReplies(percent int) {
	r.losing = true
	for _, p := range r.links {
		p.OnRequest(func(q faultproxy.Request) (a faultproxy.Action) {
			if c := q.Command(); c != "EVALSHA" && c != "EVAL" && !strings.Contains(c, `SELECT "HOLDFAST".`) {
				return a
			}
			r.lost.asked.Add(1)
			if rand.IntN(100) >= percent {
				return a
			}
			switch rand.IntN(3) {
			case 0:
				r.lost.dropped.Add(1)
				a.Reply = faultproxy.Swallow
			case 1:
				r.lost.reset.Add(1)
				a.Reply = faultproxy.Reset
			case 2:
				r.lost.swallowed.Add(1)
				a.Reply = faultproxy.BlackHole
			}
			return a
		})
	}
}

// shake makes the network slow at random.
func (r *historyRun) shake() {
	for i, p := range r.links {
		p.Jitter(0, 2*time.Millisecond, uint64(i))
		p.Reorder(5*time.Millisecond, uint64(i))
		p.Slice(100, 0, uint64(i))
	}
}
