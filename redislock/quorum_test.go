package redislock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/quorumlock"
	"github.com/holdfast-locks/holdfast/rediscore/member"
)

// trio starts three independent servers.
func trio(t testing.TB) []*testsvc.Server {
	t.Helper()
	return []*testsvc.Server{testsvc.Redis(t), testsvc.Redis(t), testsvc.Redis(t)}
}

// quorum returns an engine on the servers that is closed with the test.
func quorum(t testing.TB, servers []*testsvc.Server, opts quorumlock.Options) *quorumlock.Engine {
	t.Helper()
	var members []driver.Member
	for _, s := range servers {
		open := func(ctx context.Context) (driver.Engine, error) { return Open(ctx, s.URL+"?prefix=locks:") }
		members = append(members, member.New(s.Addr, open))
	}
	opts.CloseMembers = true
	e, err := quorumlock.New(members, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

func admit(t testing.TB, e *quorumlock.Engine) {
	t.Helper()
	if err := e.Admit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestQuorumConformance runs the suite on a quorum of three servers.
func TestQuorumConformance(t *testing.T) {
	t.Parallel()
	conformance(t, trio(t))
}

// TestQuorumConformanceOfFive runs the suite on five.
func TestQuorumConformanceOfFive(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	conformance(t, five(t))
}

// five starts five independent servers.
func five(t testing.TB) []*testsvc.Server {
	t.Helper()
	return append(trio(t), testsvc.Redis(t), testsvc.Redis(t))
}

// conformance runs the suite on a quorum of servers with the longest time limit, so that no server
// of a loaded machine seems to be down.
func conformance(t *testing.T, servers []*testsvc.Server) {
	t.Helper()
	opts := quorumlock.Options{MaxTTL: 30 * 24 * time.Hour, Timeout: 2 * time.Second}
	enginetest.Run(t, enginetest.Harness{
		Open: func(tb testing.TB) driver.Engine {
			for _, s := range servers {
				if _, err := s.Do("FLUSHALL"); err != nil {
					tb.Fatal(err)
				}
			}
			e := quorum(tb, servers, opts)
			admit(tb, e)
			return e
		},
		Join: func(tb testing.TB, _ driver.Engine) driver.Engine { return quorum(tb, servers, opts) },
		Unit: 400 * time.Millisecond,
	})
}

// TestQuorumOfFiveSurvivesTwo checks that with one dead and one silent server locks are acquired
// and released, without waiting for either.
func TestQuorumOfFiveSurvivesTwo(t *testing.T) {
	t.Parallel()
	servers := five(t)
	e := quorum(t, servers, quorumlock.Options{})
	admit(t, e)
	servers[0].Kill()
	servers[3].Stop()
	start := time.Now()
	for range 20 {
		drivertest.Cycle(t, e, "a")
	}
	// Far below 20 times the time limit of a member, which is two seconds.
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("20 leases took %s", took)
	}
	servers[1].Kill()
	if _, err := e.Acquire(t.Context(), drivertest.Request("a", time.Minute)); !errors.Is(err, quorumlock.ErrNoQuorum) {
		t.Errorf("with two of five: %v, want ErrNoQuorum", err)
	}
	servers[3].Cont()
	reached(t, e)
	drivertest.Cycle(t, e, "a")
}

// TestQuorumEmptyRestart checks that a server that restarts empty does not help to grant a lease
// that it forgot to another client, and that the next token is greater. It waits for the shortest
// quarantine.
func TestQuorumEmptyRestart(t *testing.T) {
	t.Parallel()
	servers := trio(t)
	opts := quorumlock.Options{MaxTTL: time.Second}
	e, other := quorum(t, servers, opts), quorum(t, servers, opts)
	admit(t, e)
	servers[2].Kill()
	h := drivertest.Request("a", time.Second)
	token := drivertest.Granted(t, e, h) // on servers 1 and 2
	servers[0].Restart()                 // it has forgotten the lease
	servers[1].Stop()
	servers[2].Restart() // it never had the lease
	start := time.Now()
	next := drivertest.Request("a", time.Second)
	var reply driver.AcquireReply
	for reply.Outcome != driver.Granted && time.Since(start) < drivertest.Patience {
		var err error
		next.LeaseID = lockinfo.NewLeaseID()
		reply, err = other.Acquire(t.Context(), next)
		if err != nil && !errors.Is(err, quorumlock.ErrNoQuorum) {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); reply.Outcome != driver.Granted || took < 5*time.Second {
		t.Errorf("outcome %d after %s; want a grant after the quarantine", reply.Outcome, took)
	}
	if reply.Token <= token {
		t.Errorf("token %d after %d was forgotten", reply.Token, token)
	}
	servers[1].Cont()
}

// TestQuorumSurvivesOne checks that with any one server dead or silent locks are acquired, extended
// and released soon, and that the server learns of this when it returns.
func TestQuorumSurvivesOne(t *testing.T) {
	t.Parallel()
	servers := trio(t)
	e := quorum(t, servers, quorumlock.Options{})
	admit(t, e)
	var last uint64
	use := func(how string) {
		t.Helper()
		var took []time.Duration
		for range 20 {
			start := time.Now()
			h := drivertest.Request("a", time.Minute)
			token := drivertest.Granted(t, e, h)
			if token <= last {
				t.Errorf("%s: token %d after %d", how, token, last)
			}
			last = token
			if err := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "a", LeaseID: h.LeaseID, TTL: h.TTL}})[0]; err != nil {
				t.Errorf("%s: Extend: %v", how, err)
			}
			drivertest.Release(t, e, h)
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		t.Logf("%s: acquire, extend and release take %s (median of %d)", how, took[len(took)/2], len(took))
		// Far below the time limit of a member, which is two seconds.
		if median := took[len(took)/2]; median > time.Second {
			t.Errorf("%s: %s", how, median)
		}
	}
	use("all servers")
	for i, s := range servers {
		s.Stop()
		use("a silent server")
		s.Cont()
		free(t, servers)
		s.Kill()
		use("a dead server")
		s.Restart()
		if err := e.Admit(t.Context()); err != nil {
			drivertest.Eventually(t, "the quorum is complete again", func() bool { return e.Admit(t.Context()) == nil })
		}
		if i == len(servers)-1 {
			use("all servers again")
		}
	}
	free(t, servers)
}

// free waits until no server has a lease of the lock a.
func free(t *testing.T, servers []*testsvc.Server) {
	t.Helper()
	drivertest.Eventually(t, "no server has a lease", func() bool {
		return !slices.ContainsFunc(servers, func(s *testsvc.Server) bool {
			value, err := s.Do("GET", "locks:a")
			return err != nil || strings.TrimSpace(value) != ""
		})
	})
}

// TestQuorumCost checks that each operation is one command to each server.
func TestQuorumCost(t *testing.T) {
	t.Parallel()
	servers := trio(t)
	e := quorum(t, servers, quorumlock.Options{})
	admit(t, e)
	drivertest.Cycle(t, e, "warm up")
	scripts := func() (counts []int64) {
		for _, s := range servers {
			counts = append(counts, scriptsRun(t, s))
		}
		return counts
	}
	before := scripts()
	for range 10 {
		h := drivertest.Request("a", time.Minute)
		drivertest.Granted(t, e, h)
		if err := e.Extend(t.Context(), []driver.ExtendRequest{{Name: "a", LeaseID: h.LeaseID, TTL: h.TTL}})[0]; err != nil {
			t.Fatal(err)
		}
		drivertest.Release(t, e, h)
		free(t, servers) // at the slowest server, too
	}
	for i, n := range scripts() {
		// A slower server is repaired at times, and gets a second round.
		if n -= before[i]; n < 30 || n > 45 {
			t.Errorf("server %d ran %d scripts for 10 leases, want 30 and few more", i+1, n)
		}
	}
}

// scriptsRun returns how many scripts a server has run.
func scriptsRun(t *testing.T, s *testsvc.Server) int64 {
	t.Helper()
	info, err := s.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "cmdstat_evalsha:calls=")
	var n int64
	for _, c := range rest {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// BenchmarkQuorum measures a lease from acquire to release.
func BenchmarkQuorum(b *testing.B) {
	servers := trio(b)
	e := quorum(b, servers, quorumlock.Options{})
	admit(b, e)
	for b.Loop() {
		drivertest.Cycle(b, e, "a")
	}
}

// BenchmarkSingle measures the same on one server.
func BenchmarkSingle(b *testing.B) {
	e := open(b, testsvc.Redis(b).URL)
	for b.Loop() {
		drivertest.Cycle(b, e, "a")
	}
}
