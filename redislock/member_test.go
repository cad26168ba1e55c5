package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/drivertest/membertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/member"
)

// openMember returns a member that is closed with the test.
func openMember(t testing.TB, url string) driver.Member {
	t.Helper()
	rest, _, _ := strings.Cut(url, "?")
	m := member.New(rest[strings.LastIndexAny(rest, "/@")+1:], func(ctx context.Context) (driver.Engine, error) { return Open(ctx, url) })
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return m
}

// memberOn returns a member on an engine's server.
func memberOn(t testing.TB, e *Engine) driver.Member {
	t.Helper()
	m, err := member.On(e)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// An inspector is a member or an engine.
type inspector interface {
	Inspect(ctx context.Context, name string) (lockinfo.LockState, error)
}

// reached waits until a member, or the majority of a quorum, answers again.
func reached(t testing.TB, m inspector) {
	t.Helper()
	drivertest.Eventually(t, "the member answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.Inspect(ctx, "nothing")
		return err == nil
	})
}

func TestMember(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	membertest.Run(t, membertest.Harness{
		Open: func(tb testing.TB) driver.Member {
			if _, err := server.Do("FLUSHALL"); err != nil {
				tb.Fatal(err)
			}
			return openMember(tb, server.URL+"?prefix=locks:")
		},
		Engine: func(tb testing.TB, _ driver.Member) driver.Engine { return open(tb, server.URL+"?prefix=locks:") },
		Restart: func(tb testing.TB, m driver.Member) {
			server.Restart()
			reached(tb, m)
		},
		Unit: 400 * time.Millisecond,
	})
}

// proposal returns one that a member outside quarantine accepts.
func proposal(name string) driver.ProposeRequest {
	return driver.ProposeRequest{
		Name: name, LeaseID: lockinfo.NewLeaseID(), Proposer: driver.NewProposer(), TTL: time.Minute, Holder: lockinfo.Holder{Host: "web-3"},
		Token: uint64(time.Now().UnixMicro()) &^ 1, Lead: time.Second, Quarantine: time.Minute,
	}
}

// votes sends a proposal, and checks the vote.
func votes(t testing.TB, m driver.Member, req driver.ProposeRequest, want driver.Vote) driver.ProposeReply {
	t.Helper()
	reply, err := m.Propose(t.Context(), req)
	if err != nil || reply.Vote != want {
		t.Fatalf("Propose: %+v, %v; want vote %d", reply, err, want)
	}
	return reply
}

func admitted(t testing.TB, url string) driver.Member {
	t.Helper()
	m := openMember(t, url)
	if err := m.Admit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMemberRestartWithData checks a server that restarts with its data, whose end may be missing.
// It keeps what it has, and grants nothing for a while.
func TestMemberRestartWithData(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	m := admitted(t, server.URL)
	h := proposal("a")
	votes(t, m, h, driver.VoteAccepted)
	server.Restart()
	reached(t, m)
	if reply := m.Renew(t.Context(), []driver.RenewRequest{{Name: "a", LeaseID: h.LeaseID, TTL: time.Minute}})[0]; reply.Err != nil || reply.Token != h.Token {
		t.Errorf("Renew: %+v, want the lease with token %d", reply, h.Token)
	}
	votes(t, m, proposal("a"), driver.VoteHeld)
	if token, err := m.Withdraw(t.Context(), driver.WithdrawRequest{Name: "a", LeaseID: h.LeaseID, Released: true, Token: h.Token}); err != nil || token != h.Token {
		t.Errorf("Withdraw = %d, %v; want %d", token, err, h.Token)
	}
	votes(t, m, proposal("a"), driver.VoteQuarantined)
}

// TestMemberFlush checks the same for a server whose data was deleted without a restart.
func TestMemberFlush(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	m := admitted(t, server.URL+"/3")
	votes(t, m, proposal("a"), driver.VoteAccepted)
	do(t, plain(t, server), "FLUSHALL")
	reply := votes(t, m, proposal("a"), driver.VoteQuarantined)
	if reply.Remaining > time.Minute || reply.Remaining < 50*time.Second {
		t.Errorf("%s of the quarantine remain, want a minute", reply.Remaining)
	}
}

// TestMemberMarkerClamped checks that a marker from a clock that was ahead does not close the store
// for longer than a quarantine.
func TestMemberMarkerClamped(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	m := admitted(t, server.URL)
	admin := plain(t, server)
	key := keyspace{}.marker()
	run, _, _ := strings.Cut(text(t, admin, "GET", key), " ")
	do(t, admin, "SET "+key, run+" 9000000000000")
	if reply := votes(t, m, proposal("a"), driver.VoteQuarantined); reply.Remaining > time.Minute {
		t.Errorf("%s of the quarantine remain, want a minute", reply.Remaining)
	}
	do(t, admin, "SET "+key, run+" nonsense")
	votes(t, m, proposal("a"), driver.VoteQuarantined)
}

// TestMemberKeys checks that a lease looks as one of the engine for one server does to that engine
// and to other clients.
func TestMemberKeys(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	m := admitted(t, server.URL+"?prefix=p:")
	admin := plain(t, server)
	h := proposal("a")
	votes(t, m, h, driver.VoteAccepted)
	got := text(t, admin, "GET p:a")
	var granted int64
	id := string(h.LeaseID) + "/" + string(h.Proposer)
	_, _ = fmt.Sscanf(got, "1 "+id+" 60000 "+fmt.Sprint(h.Token)+" %d", &granted)
	want := "1 " + id + " 60000 " + fmt.Sprintf("%d %d", h.Token, granted) + ` {"host":"web-3"}`
	if now := time.Now().UnixMicro(); got != want || granted > now || granted < now-time.Minute.Microseconds() {
		t.Errorf("the lock's key holds %q, want %q, granted at %d", got, want, now)
	}
	if got := text(t, admin, "GET p:holdfast:{p:a}:fence:a"); got != fmt.Sprint(h.Token) {
		t.Errorf("the last token is %q, want %d", got, h.Token)
	}
	forget, err := do(t, admin, "PEXPIRETIME p:holdfast:{p:a}:fence:a").AsInt64()
	if want := int64(h.Token/1000) + driver.TokenMemory.Milliseconds(); err != nil || forget != want {
		t.Errorf("the last token is forgotten at %d, %v; want %d", forget, err, want)
	}
	if got := do(t, admin, "SET p:a other NX PX 1000").Error(); got == nil {
		t.Error("a foreign client took a lock that is held")
	}
	do(t, admin, "SET p:b other NX PX 60000")
	reply := votes(t, m, proposal("b"), driver.VoteHeld)
	if reply.Rival != "" || reply.ExpiresIn > time.Minute || reply.ExpiresIn < 50*time.Second {
		t.Errorf("a foreign lock in the way: %+v", reply)
	}
	do(t, admin, "SET p:c other")
	if reply := votes(t, m, proposal("c"), driver.VoteHeld); reply.ExpiresIn != lockinfo.Never {
		t.Errorf("a foreign lock with no expiry: %+v", reply)
	}
}

// TestMemberBesideEngine checks that other kinds of leases, and places in a queue, block a
// proposal.
func TestMemberBesideEngine(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	m := admitted(t, server.URL)
	e := open(t, server.URL)
	shared := drivertest.Request("shared", time.Minute)
	shared.Mode = lockinfo.Shared
	drivertest.Granted(t, e, shared)
	votes(t, m, proposal("shared"), driver.VoteHeld)

	permits := drivertest.Request("permits", time.Minute)
	permits.Mode = lockinfo.Permits(1, 2)
	drivertest.Granted(t, e, permits)
	if reply, err := m.Propose(t.Context(), proposal("permits")); !errors.Is(err, driver.ErrKindMismatch) {
		t.Errorf("Propose for a semaphore: %+v, %v; want ErrKindMismatch", reply, err)
	}

	h := proposal("queue")
	votes(t, m, h, driver.VoteAccepted)
	waiter := drivertest.Request("queue", time.Minute)
	waiter.Queue, waiter.WaiterTTL = true, time.Minute
	drivertest.Held(t, e, waiter)
	if _, err := m.Withdraw(t.Context(), driver.WithdrawRequest{Name: "queue", LeaseID: h.LeaseID, Released: true}); err != nil {
		t.Fatal(err)
	}
	votes(t, m, proposal("queue"), driver.VoteHeld)
	replies := e.Refresh(t.Context(), []driver.RefreshRequest{{Name: "queue", LeaseID: waiter.LeaseID, WaiterTTL: time.Minute}})
	if replies[0].Err != nil || replies[0].Outcome != driver.Granted || replies[0].Token <= h.Token {
		t.Errorf("Refresh of the waiter: %+v, want a grant above token %d", replies[0], h.Token)
	}
}

// TestMemberOnFullServer checks that a full server accepts nothing, and still lets a lease be
// renewed and ended.
func TestMemberOnFullServer(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	m := admitted(t, server.URL)
	h := proposal("a")
	votes(t, m, h, driver.VoteAccepted)
	kept := proposal("b")
	votes(t, m, kept, driver.VoteAccepted)
	admin := plain(t, server)
	do(t, admin, "CONFIG SET maxmemory 1")
	if _, err := m.Propose(t.Context(), proposal("c")); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("Propose: %v, want ErrUnavailable", err)
	}
	if reply := m.Renew(t.Context(), []driver.RenewRequest{{Name: "a", LeaseID: h.LeaseID, TTL: time.Hour}})[0]; reply.Err != nil {
		t.Errorf("Renew: %v", reply.Err)
	}
	if reply := m.Renew(t.Context(), []driver.RenewRequest{{Name: "b", LeaseID: kept.LeaseID, TTL: time.Second}})[0]; reply.Err != nil {
		t.Errorf("Renew with a shorter TTL: %v", reply.Err)
	}
	if _, err := m.Withdraw(t.Context(), driver.WithdrawRequest{Name: "a", LeaseID: h.LeaseID, Released: true, Token: h.Token, Lead: time.Second}); err != nil {
		t.Errorf("Withdraw: %v", err)
	}
	_, err := m.Withdraw(t.Context(), driver.WithdrawRequest{Name: "b", LeaseID: kept.LeaseID, Released: true, Token: kept.Token, KeepFor: time.Minute})
	if err != nil {
		t.Errorf("Withdraw with KeepFor: %v", err)
	}
	// INVARIANT I4: a break that cannot prevent later repairs was not carried out.
	missed := proposal("d")
	_, err = m.(driver.Breaker).Break(t.Context(), driver.BreakRequest{Name: "d", ID: lockinfo.NewLeaseID(), Token: missed.Token, Reason: "test"})
	if !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("Break of a lease that is not there: %v, want ErrUnavailable", err)
	}
	do(t, admin, "CONFIG SET maxmemory 0")
	for _, req := range []driver.ProposeRequest{h, kept} {
		if last := text(t, admin, "GET", keyspace{}.fence(req.Name)); last != fmt.Sprint(req.Token+1) {
			t.Errorf("%q: counter %s after the withdrawal of %d", req.Name, last, req.Token)
		}
	}
	votes(t, m, h, driver.VoteRefused)
	votes(t, m, proposal("b"), driver.VoteHeld)
}

// TestMemberErrors covers wrong values of the keys, and errors of the server.
func TestMemberErrors(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	m := admitted(t, server.URL)
	admin := plain(t, server)
	do(t, admin, "HSET list field value")
	do(t, admin, "HSET "+keyspace{}.fence("fence"), "field", "value")
	do(t, admin, "SET "+keyspace{}.fence("nonsense"), "value")
	for _, name := range []string{"list", "fence", "nonsense"} {
		req := proposal(name)
		_, err := m.Propose(t.Context(), req)
		_, withdraw := m.Withdraw(t.Context(), driver.WithdrawRequest{Name: name, LeaseID: req.LeaseID, Released: true, Token: req.Token})
		repair := m.Renew(t.Context(), []driver.RenewRequest{
			{Name: name, LeaseID: req.LeaseID, TTL: time.Minute, Repair: true, Token: req.Token},
			{Name: "free", LeaseID: req.LeaseID, TTL: time.Minute},
		})
		for what, err := range map[string]error{"Propose": err, "Withdraw": withdraw, "repair": repair[0].Err} {
			if !errors.Is(err, driver.ErrKindMismatch) {
				t.Errorf("%s of %q: %v, want ErrKindMismatch", what, name, err)
			}
		}
		if !errors.Is(repair[1].Err, driver.ErrLost) {
			t.Errorf("another in the same batch: %v, want ErrLost", repair[1].Err)
		}
	}
	if _, err := m.Propose(t.Context(), proposal("holdfast:{x")); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Propose for a reserved name: %v, want ErrInvalid", err)
	}
	do(t, admin, "ACL SETUSER noinfo on nopass ~* &* +@all -info")
	denied := openMember(t, strings.Replace(server.URL, "redis://", "redis://noinfo:x@", 1))
	if _, err := denied.Propose(t.Context(), proposal("a")); !errors.Is(err, driver.ErrPermission) {
		t.Errorf("Propose without the right to INFO: %v, want ErrPermission", err)
	}
	do(t, admin, "ACL SETUSER least on nopass ~* resetchannels +evalsha +eval +exists +get +set +del +pttl +pexpire +time +info +ping +hello")
	least := openMember(t, strings.Replace(server.URL, "redis://", "redis://least:x@", 1))
	h := proposal("a")
	votes(t, least, h, driver.VoteAccepted)
	if reply := least.Renew(t.Context(), []driver.RenewRequest{{Name: "a", LeaseID: h.LeaseID, TTL: time.Hour}})[0]; reply.Err != nil {
		t.Errorf("Renew with the documented rights: %v", reply.Err)
	}
	if _, err := least.Withdraw(t.Context(), driver.WithdrawRequest{Name: "a", LeaseID: h.LeaseID, Released: true, Token: h.Token, Cancel: true}); err != nil {
		t.Errorf("Withdraw with the documented rights: %v", err)
	}
	if err := least.Admit(t.Context()); err != nil {
		t.Errorf("Admit with the documented rights: %v", err)
	}
}

// TestMemberOpensLater checks that a member may be down when it is opened.
func TestMemberOpensLater(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	server.Kill()
	m := openMember(t, server.URL)
	if _, err := m.Propose(t.Context(), proposal("a")); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("Propose: %v, want ErrUnavailable", err)
	}
	server.Restart()
	reached(t, m)
	votes(t, m, proposal("a"), driver.VoteQuarantined)

	silent := testsvc.Redis(t)
	silent.Stop()
	m = openMember(t, silent.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := m.Propose(ctx, proposal("a")); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("Propose to a silent server: %v, want ErrUnavailable: nothing was sent", err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("Propose to a silent server took %s", took)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestGroupIsNoMember: the masters of a cluster lose their data one by one, which one marker
// cannot show. After a failover by Sentinel, each part of a divided network may have a master: with
// one of the other members each would be a majority.
func TestGroupIsNoMember(t *testing.T) {
	t.Parallel()
	for name, group := range map[string]*Engine{
		"cluster":   engineOn(t, clusterClient(t, cluster(t)), nil),
		"sentinels": open(t, testsvc.Sentinel(t).URL),
	} {
		m := memberOn(t, group)
		defer m.Close()
		if _, err := m.Propose(t.Context(), proposal("a")); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: Propose: %v, want ErrInvalid", name, err)
		}
	}
}
