package pglock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// TestWaitedLease checks that a lease whose acquire waited for the row begins when it had the row.
func TestWaitedLease(t *testing.T) {
	server := testsvc.Postgres(t)
	e := open(t, urlOf(server, "postgres", "postgres", ""))
	drivertest.Cycle(t, e, "t")
	end := foreign(t, server, "t")
	req := drivertest.Request("t", time.Hour)
	began, granted := time.Now(), make(chan uint64)
	go func() {
		reply, _ := e.Acquire(context.WithoutCancel(t.Context()), req)
		granted <- reply.Token
	}()
	drivertest.Eventually(t, "an acquire that waits", func() bool { return waiters(t, server) == 1 })
	for time.Since(began) < 500*time.Millisecond {
		time.Sleep(10 * time.Millisecond)
	}
	asked := time.Now()
	end()
	token := <-granted
	lock, err := e.Inspect(t.Context(), "t")
	if err != nil || len(lock.Holders) != 1 || token < uint64(asked.UnixMicro()) {
		t.Fatalf("token %d, %+v, %v", token, lock, err)
	}
	if h := lock.Holders[0]; h.Since > time.Since(asked) || h.ExpiresIn < time.Hour-time.Since(asked) {
		t.Errorf("the lease was granted %s ago, and ends in %s: it has the row since %s", h.Since, h.ExpiresIn, time.Since(asked))
	}
}

// guarded begins a transaction that keeps a name closed.
func guarded(t testing.TB, server *testsvc.Database, name string) (end func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "SELECT FROM holdfast.lock WHERE name = $1 FOR KEY SHARE", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestGuard checks that no other client is granted a name while a transaction has FOR KEY SHARE on
// the row of its lease, however the lease ends, and that renewals do not wait.
func TestGuard(t *testing.T) {
	server := testsvc.Postgres(t)
	e := open(t, urlOf(server, "postgres", "postgres", ""))
	release := func(held driver.AcquireRequest) { drivertest.Release(t, e, held) }
	for name, end := range map[string]func(held driver.AcquireRequest){
		"released": release,
		"queued":   release,
		"shared":   release,
		"several":  release,
		"broken": func(held driver.AcquireRequest) {
			if ended, err := e.Break(t.Context(), driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: held.Name, Token: driver.MaxToken, Older: true, Author: "me"}); err != nil || len(ended) != 1 {
				t.Errorf("break: %d leases, %v", len(ended), err)
			}
		},
		"expired": func(held driver.AcquireRequest) {
			drivertest.Eventually(t, "the end of the lease", func() bool {
				lock, err := e.Inspect(t.Context(), held.Name)
				return err == nil && len(lock.Holders) == 0
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			held, next := drivertest.Request(name, time.Minute), drivertest.Request(name, time.Minute)
			if name == "expired" {
				held.TTL = 500 * time.Millisecond
			}
			if name == "shared" {
				next.Mode = lockinfo.Shared
			}
			try := func() driver.Outcome {
				if name == "several" {
					all, err := e.AcquireAll(t.Context(), []driver.AcquireRequest{drivertest.Request("another", time.Second), next})
					if err != nil {
						t.Error(err)
					}
					return all.Outcome
				}
				reply, err := e.Acquire(t.Context(), next)
				if err != nil || reply.Outcome == driver.Held && reply.ExpiresIn <= 0 {
					t.Errorf("%+v, %v", reply, err)
				}
				return reply.Outcome
			}
			drivertest.Granted(t, e, held)
			commit := guarded(t, server, name)
			if name != "expired" {
				began := time.Now()
				if errs := e.Extend(t.Context(), []driver.ExtendRequest{{Name: name, LeaseID: held.LeaseID, TTL: time.Minute}}); errs[0] != nil || time.Since(began) > 4*time.Second {
					t.Errorf("renewal beside a guard: %v after %s", errs[0], time.Since(began))
				}
			}
			if name == "queued" {
				next.Queue, next.WaiterTTL = true, time.Minute
				drivertest.Held(t, e, next)
			}
			end(held)
			for range 3 {
				if outcome := try(); outcome != driver.Held {
					t.Fatalf("behind the guard it was %d", outcome)
				}
			}
			commit()
			if outcome := try(); outcome != driver.Granted {
				t.Errorf("after the guard it was %d", outcome)
			}
		})
	}
}

// TestGuardDuringRelease checks that the next acquire sees a guard that came before the release was
// committed.
func TestGuardDuringRelease(t *testing.T) {
	server := testsvc.Postgres(t)
	e := open(t, urlOf(server, "postgres", "postgres", ""))
	held := drivertest.Request("t", time.Minute)
	drivertest.Granted(t, e, held)
	conn, err := pgx.Connect(t.Context(), server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "SELECT holdfast.release('t', $1, 0, false, false, false)", string(held.LeaseID))
	}
	if err != nil {
		t.Fatal(err)
	}
	commit := guarded(t, server, "t")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	drivertest.Held(t, e, drivertest.Request("t", time.Minute))
	commit()
	drivertest.Granted(t, e, drivertest.Request("t", time.Minute))
}

// TestCrash checks that grants, hand-overs, extensions, records, breaks and deposits survive a
// crash of the server, even if its role does not wait for the disk.
func TestCrash(t *testing.T) {
	server := testsvc.Postgres(t)
	execute(t, server, "postgres", "ALTER SYSTEM SET wal_writer_delay = '10s'", "ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()")
	e := open(t, urlOf(server, "postgres", "postgres", ""))
	held, waiter := drivertest.Request("handed over", time.Hour), drivertest.Request("handed over", time.Hour)
	waiter.Queue, waiter.WaiterTTL = true, time.Hour
	granted, lengthened := drivertest.Request("granted", time.Hour), drivertest.Request("lengthened", time.Minute)
	done, broken := drivertest.Request("done", time.Hour), drivertest.Request("broken", time.Hour)
	proof := driver.Proof("proof")
	holders := func(name string) []lockinfo.Holding {
		lock, err := e.Inspect(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return lock.Holders
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	for _, req := range []driver.AcquireRequest{held, lengthened, done, broken} {
		drivertest.Granted(t, e, req)
	}
	drivertest.Held(t, e, waiter)
	for name, step := range map[string]struct{ do, check func() }{
		"grant": {
			func() { drivertest.Granted(t, e, granted) },
			func() {
				if h := holders("granted"); len(h) != 1 || h[0].LeaseID != granted.LeaseID {
					t.Errorf("%+v", h)
				}
			},
		},
		"hand-over": {
			func() { drivertest.Release(t, e, held) },
			func() {
				if h := holders("handed over"); len(h) != 1 || h[0].LeaseID != waiter.LeaseID {
					t.Errorf("%+v", h)
				}
			},
		},
		"extend": {
			func() {
				must(e.Extend(t.Context(), []driver.ExtendRequest{{Name: "lengthened", LeaseID: lengthened.LeaseID, TTL: time.Hour}})[0])
			},
			func() {
				if h := holders("lengthened"); len(h) != 1 || h[0].ExpiresIn < 30*time.Minute {
					t.Errorf("%+v", h)
				}
			},
		},
		"record": {
			func() {
				must(e.Complete(t.Context(), driver.CompleteRequest{Name: "done", LeaseID: done.LeaseID, Record: []byte("x"), Retention: time.Hour}))
			},
			func() {
				if _, found, err := e.Recall(t.Context(), "done"); err != nil || !found {
					t.Errorf("%t, %v", found, err)
				}
			},
		},
		"break": {
			func() {
				_, err := e.Break(t.Context(), driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: "broken", Token: driver.MaxToken, Older: true, Author: "me"})
				must(err)
			},
			func() {
				if all, err := e.Breaks(t.Context(), "broken"); err != nil || len(all) != 1 || len(holders("broken")) != 0 {
					t.Errorf("%d breaks, %v", len(all), err)
				}
			},
		},
		"one-time token": {
			func() {
				must(e.Deposit(t.Context(), driver.DepositRequest{Digest: proof.Digest(), TTL: time.Hour, Memory: time.Hour}))
			},
			func() {
				if reply, err := e.Peek(t.Context(), proof); err != nil || reply.State != driver.Fresh {
					t.Errorf("%v, %v", reply.State, err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			execute(t, server, "postgres", "SELECT pg_switch_wal()", "CHECKPOINT") // the earlier changes are on disk
			step.do()
			server.Restart()
			drivertest.Eventually(t, "the server", func() bool {
				_, err := e.Inspect(t.Context(), "granted")
				return err == nil
			})
			step.check()
		})
	}
}

// TestNotReplicated checks that a grant whose wait for the standby was cancelled has an unknown
// outcome, whatever messages the role hides, and that no reply to another request, and no notice,
// confirms it or a break before it is replicated. INVARIANT I1.
func TestNotReplicated(t *testing.T) {
	server := testsvc.Postgres(t)
	execute(t, server, "postgres", `CREATE ROLE quiet LOGIN SUPERUSER`, `ALTER ROLE quiet SET client_min_messages = error`)
	e := open(t, urlOf(server, "quiet", "postgres", ""))
	held, waiter, broken := drivertest.Request("t", time.Hour), drivertest.Request("t", time.Hour), drivertest.Request("broken", time.Hour)
	waiter.Queue, waiter.WaiterTTL = true, time.Hour
	drivertest.Granted(t, e, held)
	drivertest.Held(t, e, waiter)
	w := e.Watch(waiter.LeaseID)
	defer w.Stop()
	toldToLook(t, w) // the ear listens
	breaks := driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: "broken", Token: drivertest.Granted(t, e, broken), Author: "me"}
	server.Configure("synchronous_standby_names = 'none'")
	await(t, func() bool { return server.Query("SHOW synchronous_standby_names") == "none" })
	for _, step := range []struct {
		what string
		do   func(ctx context.Context) error
	}{
		{"acquire", func(ctx context.Context) error {
			_, err := e.Acquire(ctx, drivertest.Request("free", time.Hour))
			return err
		}},
		{"hand-over", func(ctx context.Context) error {
			return e.Release(ctx, driver.ReleaseRequest{Name: "t", LeaseID: held.LeaseID})
		}},
		{"refresh", func(ctx context.Context) error {
			return e.Refresh(ctx, []driver.RefreshRequest{{Name: "t", LeaseID: waiter.LeaseID, WaiterTTL: time.Hour}})[0].Err
		}},
		{"break", func(ctx context.Context) error { _, err := e.Break(ctx, breaks); return err }},
		{"repeated break", func(ctx context.Context) error { _, err := e.Break(ctx, breaks); return err }},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if err := step.do(ctx); !errors.Is(err, errNotReplicated) {
			t.Errorf("%s: %v, want %v", step.what, err, errNotReplicated)
		}
		cancel()
	}
	select {
	case n := <-w.C():
		t.Errorf("the waiter has the notice %+v", n)
	default:
	}
	server.Configure("synchronous_standby_names = ''")
	await(t, func() bool { return server.Query("SHOW synchronous_standby_names") == "" })
	if r := e.Refresh(t.Context(), []driver.RefreshRequest{{Name: "t", LeaseID: waiter.LeaseID, WaiterTTL: time.Hour}})[0]; r.Err != nil || r.Outcome != driver.Granted {
		t.Errorf("when no standby is missing: %+v", r)
	}
}

// TestSweepLeavesWhatIsUsed checks that a name with a lease or a place remains however old its
// token is, and that tombstones and records remain until they expire.
func TestSweepLeavesWhatIsUsed(t *testing.T) {
	server := testsvc.Postgres(t)
	e := open(t, urlOf(server, "postgres", "postgres", "&token_memory=1s"))
	var all []driver.ExtendRequest
	for _, mode := range []lockinfo.Mode{lockinfo.Exclusive, lockinfo.Shared, lockinfo.Permits(1, 2)} {
		req := drivertest.Request(mode.String(), time.Hour)
		req.Mode = mode
		drivertest.Granted(t, e, req)
		all = append(all, driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: time.Hour})
	}
	waiter, cancelled := drivertest.Request("exclusive", time.Hour), drivertest.Request("cancelled", time.Hour)
	waiter.Queue, waiter.WaiterTTL = true, time.Hour
	drivertest.Held(t, e, waiter)
	if err := e.Release(t.Context(), driver.ReleaseRequest{Name: "cancelled", LeaseID: cancelled.LeaseID, Cancel: true}); err == nil {
		t.Error("there was a lease to cancel")
	}
	time.Sleep(1100 * time.Millisecond) // the token memory
	e.sweep()
	for i, err := range e.Extend(t.Context(), all) {
		if err != nil {
			t.Errorf("%s: %v", all[i].Name, err)
		}
	}
	if r := e.Refresh(t.Context(), []driver.RefreshRequest{{Name: "exclusive", LeaseID: waiter.LeaseID, WaiterTTL: time.Hour}})[0]; r.Err != nil || r.Place != 1 {
		t.Errorf("%+v", r)
	}
	if reply, err := e.Acquire(t.Context(), cancelled); err != nil || reply.Outcome != driver.Cancelled {
		t.Errorf("%v, %v", reply.Outcome, err)
	}
}
