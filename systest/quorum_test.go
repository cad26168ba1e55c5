package systest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/quorumlock"
	"github.com/holdfast-locks/holdfast/redislock/member"
	"github.com/holdfast-locks/holdfast/systest/quorumsim"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

const (
	quorumTTL     = time.Second
	quorumClients = 3
	quorumWorkers = 4 // of each client
	quorumNames   = 3
	// quorumSkew is the most by which the clients' clocks may be off.
	quorumSkew = 1500 * time.Millisecond
	// quorumGap is the longest time without any grant while one member is faulty: it allows for a
	// lease that no process can end any more, and for a loaded machine.
	quorumGap = 3 * time.Second
)

// A trio is three independent servers, each behind a network of its own.
type trio struct {
	servers []*testsvc.Server
	links   []*faultproxy.Proxy
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	g := &trio{}
	for range 3 {
		s := testsvc.Redis(t)
		g.servers = append(g.servers, s)
		g.links = append(g.links, faultproxy.New(t, s.Addr))
	}
	return g
}

// engine returns a quorum of the servers, with a short quarantine.
func (g *trio) engine(t *testing.T, addr func(i int) string, timeout time.Duration) *quorumlock.Engine {
	t.Helper()
	return g.skewed(t, addr, timeout, 0)
}

// skewed returns a quorum of the servers for a client whose clock is ahead.
func (g *trio) skewed(t *testing.T, addr func(i int) string, timeout, ahead time.Duration) *quorumlock.Engine {
	t.Helper()
	var members []driver.Member
	for i := range g.servers {
		m, err := member.Open("redis://" + addr(i))
		if err != nil {
			t.Fatal(err)
		}
		if ahead != 0 {
			members = append(members, quorumsim.Skew(m, ahead))
			continue
		}
		members = append(members, m)
	}
	e, err := quorumlock.New(members, &quorumlock.Options{MaxTTL: quorumTTL, Timeout: timeout, CloseMembers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close the quorum: %v", err)
		}
	})
	return e
}

// far returns the address of a server behind its faulty network, near the address without faults.
func (g *trio) far(i int) string  { return g.links[i].Addr() }
func (g *trio) near(i int) string { return g.servers[i].Addr }

// admitted returns an engine on the network without faults, after it has ended the quarantine of
// the new servers.
func (g *trio) admitted(t *testing.T) *quorumlock.Engine {
	t.Helper()
	e := g.engine(t, g.near, 0)
	if err := e.Admit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// able returns how many members can grant locks.
func able(t *testing.T, e *quorumlock.Engine) int64 {
	t.Helper()
	d, err := e.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: quorumTTL})
	if err != nil {
		return 0
	}
	return d.Findings[0].Counts["able"]
}

// litter returns the values that servers still have for a lock.
func (g *trio) litter(name string) (found []string) {
	for _, s := range g.servers {
		if value, err := s.Do("GET", name); err != nil || value != "" {
			found = append(found, fmt.Sprintf("%s: %q %v", s.Addr, value, err))
		}
	}
	return found
}

// A quorumShift is a group of clients that take turns at some locks, with what they saw.
type quorumShift struct {
	t    *testing.T
	gate *fence.Gate
	stop context.CancelFunc
	all  sync.WaitGroup

	lost    atomic.Int64 // leases that ended with ErrLost
	refused atomic.Int64 // writes of stale holders

	mu       sync.Mutex                 // guards the rest
	written  map[string][]claim         // accepted writes, in their order
	highest  map[string]uint64          // the greatest token that was granted
	present  map[string]*holdfast.Lease // leases whose release has not begun
	granted  int
	latest   time.Time     // when the last grant was
	longest  time.Duration // time without a grant
	overlaps int
}

// A skewedClaim is a lease of a client whose clock is ahead, with its token in the servers' time.
type skewedClaim struct {
	*holdfast.Lease
	ahead uint64
}

func (c skewedClaim) Token() uint64 { return c.Lease.Token() + c.ahead }

// A claim is what the resource recorded of a write.
type claim struct {
	token uint64
	id    holdfast.LeaseID
}

func newQuorumShift(t *testing.T, g *trio) *quorumShift {
	s := &quorumShift{
		t: t, gate: traffic.NewGate(t), latest: time.Now(),
		written: map[string][]claim{}, highest: map[string]uint64{}, present: map[string]*holdfast.Lease{},
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	for range quorumClients {
		ahead := 2 * (rand.N(quorumSkew) - quorumSkew/2)
		client := newClient(t, g.skewed(t, g.far, 0, ahead), &holdfast.Options{TTL: quorumTTL, SharedEngine: true})
		for i := range quorumWorkers {
			s.all.Go(func() {
				for ctx.Err() == nil {
					s.turn(ctx, client, ahead, fmt.Sprintf("quorum/%d", i%quorumNames))
				}
			})
		}
	}
	t.Cleanup(s.end)
	return s
}

func (s *quorumShift) end() {
	s.stop()
	s.all.Wait()
}

// turn acquires a lock once and writes under it.
func (s *quorumShift) turn(ctx context.Context, client *holdfast.Client, ahead time.Duration, name string) {
	s.mu.Lock()
	before := s.highest[name]
	s.mu.Unlock()
	lease, err := client.Acquire(ctx, name, nil)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, holdfast.ErrUnavailable) {
			s.t.Errorf("acquire: %v", err)
		}
		return
	}
	claims := skewedClaim{lease, uint64(ahead.Microseconds()) &^ 1}
	s.took(claims, before)
	for range 3 {
		s.write(claims)
		select {
		case <-time.After(5 * time.Millisecond):
		case <-lease.Context().Done():
		}
	}
	s.mu.Lock()
	if s.present[name] == lease {
		delete(s.present, name)
	}
	s.mu.Unlock()
	if err := lease.Release(context.WithoutCancel(ctx)); errors.Is(err, holdfast.ErrLost) {
		s.lost.Add(1)
	}
}

// took records a grant, and checks that its token is greater than all tokens granted before the
// lock was requested. INVARIANT I2.
func (s *quorumShift) took(l skewedClaim, before uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.longest, s.latest = max(s.longest, now.Sub(s.latest)), now
	s.granted++
	if l.Token() <= before {
		s.t.Errorf("%s: token %d after %d", l.Name(), l.Token(), before)
	}
	s.highest[l.Name()] = max(s.highest[l.Name()], l.Token())
	if other := s.present[l.Name()]; other != nil && other.Valid() && l.Valid() {
		s.overlaps++
	}
	s.present[l.Name()] = l.Lease
}

// write writes to a resource that refuses the tokens of stale holders.
func (s *quorumShift) write(l skewedClaim) {
	err := s.gate.Write(l.Name(), l, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.written[l.Name()] = append(s.written[l.Name()], claim{l.Token(), l.ID()})
		return nil
	})
	if err != nil {
		s.refused.Add(1)
	}
}

// check fails the test unless the accepted writes are in order: each holder's writes follow another
// holder's, with greater tokens.
func (s *quorumShift) check() {
	s.t.Helper()
	holders := 0
	for name, all := range s.written {
		for i, c := range all {
			if i == 0 || c.token != all[i-1].token {
				holders++
			}
			if i > 0 && (c.token < all[i-1].token || c.token == all[i-1].token && c.id != all[i-1].id) {
				s.t.Errorf("%s: write %d has the claim %v after %v", name, i, c, all[i-1])
			}
		}
	}
	if holders < s.granted/2 {
		s.t.Errorf("%d holders wrote, of %d", holders, s.granted)
	}
	if s.overlaps > 0 {
		s.t.Errorf("%d times a lock was granted while another lease was valid", s.overlaps)
	}
	if s.longest > quorumGap {
		s.t.Errorf("nobody was granted a lock for %s", s.longest)
	}
}

// TestQuorumMinorityFails checks a quorum of which one member of three is stopped, cut off, silent,
// or killed and restarted empty, while the clients' clocks are off. There are never two holders,
// tokens grow, and locks stay available.
func TestQuorumMinorityFails(t *testing.T) {
	g := newTrio(t)
	near := g.admitted(t)
	s := newQuorumShift(t, g)
	faults := []struct {
		name      string
		do, mend  func(i int)
		forgotten bool
	}{
		{"STOP", func(i int) { g.servers[i].Stop() }, func(i int) { g.servers[i].Cont() }, false},
		{"cut", func(i int) { g.links[i].Cut() }, func(i int) { g.links[i].Heal() }, false},
		{"silence", func(i int) { g.links[i].BlackHole() }, func(i int) { g.links[i].Heal() }, false},
		{"KILL, and empty again", func(i int) { g.servers[i].Kill() }, func(i int) { g.servers[i].Restart() }, true},
	}
	length := soak.For(4*time.Second, 2*time.Minute)
	began, rounds := time.Now(), 0
	for ; rounds == 0 || time.Since(began) < length; rounds++ {
		for _, n := range rand.Perm(len(faults)) {
			fault, i := faults[n], rand.IntN(len(g.servers))
			fault.do(i)
			time.Sleep(200*time.Millisecond + rand.N(600*time.Millisecond)) // while the fault lasts
			fault.mend(i)
			eventually(t, "the member takes part again after "+fault.name, func() bool {
				time.Sleep(20 * time.Millisecond) // between looks, each of which takes a hundred commands
				return able(t, near) == 3
			})
		}
	}
	s.end()
	report.Row(t, "one member of a quorum of three stopped, cut off, silent or restarted empty, clients' clocks off by up to 1.5 s", "no two holders whose writes both pass, tokens grow, locks stay available",
		"%d faults in %s: %d leases, %d of them lost; %d writes refused; longest time without a grant %s",
		rounds*len(faults), time.Since(began).Round(time.Millisecond), s.granted, s.lost.Load(), s.refused.Load(), s.longest)
	s.check()
	for i := range quorumNames {
		name := fmt.Sprintf("quorum/%d", i)
		eventually(t, "no server has a lease of "+name, func() bool { return len(g.litter(name)) == 0 })
	}
}

// TestQuorumMajorityFails checks that nothing is granted without a majority, that the error is
// returned in time, and that what the minority accepted is gone after the others are back.
func TestQuorumMajorityFails(t *testing.T) {
	const timeout = 200 * time.Millisecond
	for _, fault := range []struct {
		name     string
		do, mend func(g *trio, i int)
	}{
		{"KILL", func(g *trio, i int) { g.servers[i].Kill() }, func(g *trio, i int) { g.servers[i].Restart() }},
		{"STOP", func(g *trio, i int) { g.servers[i].Stop() }, func(g *trio, i int) { g.servers[i].Cont() }},
		{"cut", func(g *trio, i int) { g.links[i].Cut() }, func(g *trio, i int) { g.links[i].Heal() }},
		{"silence", func(g *trio, i int) { g.links[i].BlackHole() }, func(g *trio, i int) { g.links[i].Heal() }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			g := newTrio(t)
			near := g.admitted(t)
			e := g.engine(t, g.far, timeout)
			client := newClient(t, e, &holdfast.Options{TTL: quorumTTL, SharedEngine: true})
			lease, err := client.TryAcquire(t.Context(), "held", nil)
			if err != nil {
				t.Fatal(err)
			}
			fault.do(g, 0)
			fault.do(g, 1)
			var slowest time.Duration
			for i := range 5 {
				start := time.Now()
				reply, err := e.Acquire(t.Context(), driver.AcquireRequest{Name: "free", LeaseID: lockinfo.NewLeaseID(), TTL: quorumTTL})
				took := time.Since(start)
				slowest = max(slowest, took)
				if !errors.Is(err, quorumlock.ErrNoQuorum) || reply.Outcome == driver.Granted {
					t.Errorf("attempt %d: %+v, %v; want ErrNoQuorum", i, reply, err)
				}
			}
			report.Row(t, "a majority of a quorum is gone: "+fault.name, "ErrNoQuorum within the timeout, nothing granted, no litter",
				"five attempts, the slowest took %s with a timeout of %s", slowest.Round(time.Millisecond), timeout)
			if slowest > timeout+100*time.Millisecond {
				t.Errorf("an attempt took %s, with a timeout of %s", slowest, timeout)
			}
			if _, err := client.TryAcquire(t.Context(), "free", nil); !errors.Is(err, quorumlock.ErrNoQuorum) {
				t.Errorf("TryAcquire: %v, want ErrNoQuorum", err)
			}
			<-lease.Context().Done()
			if err := context.Cause(lease.Context()); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("the lease ended with %v, want ErrLost", err)
			}
			fault.mend(g, 0)
			fault.mend(g, 1)
			eventually(t, "nothing is left of the attempts", func() bool { return len(g.litter("free")) == 0 })
			eventually(t, "all members take part", func() bool {
				time.Sleep(20 * time.Millisecond)
				return able(t, near) == 3
			})
			eventually(t, "the lock is free", func() bool {
				next, err := client.TryAcquire(t.Context(), "free", nil)
				if err != nil {
					return false
				}
				return next.Release(t.Context()) == nil
			})
			eventually(t, "nothing is left", func() bool { return len(g.litter("free")) == 0 })
		})
	}
}
