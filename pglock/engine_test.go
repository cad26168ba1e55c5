package pglock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// foreign locks the row of a name in a transaction of another program, until its result is called.
func foreign(t testing.TB, server *testsvc.Database, name string) (end func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "SELECT FROM holdfast.lock WHERE name = $1 FOR UPDATE", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() { _ = conn.Close(context.Background()) })
	t.Cleanup(end)
	return end
}

// waiters returns how many transactions wait for a lock of the server.
func waiters(t testing.TB, server *testsvc.Database) int64 {
	return number(t, server, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
}

// TestOvertakenAcquire checks an acquire that waits for the row, and whose cancel waits, too. When
// the row is free, they run in either order, and no lease remains. INVARIANT I5.
func TestOvertakenAcquire(t *testing.T) {
	server := testsvc.Postgres(t)
	e := open(t, urlOf(server, "postgres", "postgres", "&pool_max_conns=40"))
	rounds, width := 50, 20
	if testing.Short() {
		rounds = 5
	}
	drivertest.Cycle(t, e, "t")
	var overtaken atomic.Int64
	for range rounds {
		end := foreign(t, server, "t")
		var all sync.WaitGroup
		for i := range width {
			req := drivertest.Request("t", time.Minute)
			cancel := func() {
				err := e.Release(context.WithoutCancel(t.Context()), driver.ReleaseRequest{Name: "t", LeaseID: req.LeaseID, Cancel: true})
				if err != nil && !errors.Is(err, driver.ErrLost) {
					t.Errorf("cancel: %v", err)
				}
			}
			acquire := func() {
				reply, err := e.Acquire(t.Context(), req)
				if err != nil {
					t.Errorf("acquire: %v", err)
				}
				if reply.Outcome == driver.Cancelled {
					overtaken.Add(1)
				}
			}
			first, second := acquire, cancel
			if i%2 == 0 {
				first, second = cancel, acquire
			}
			all.Go(first)
			all.Go(second)
		}
		drivertest.Eventually(t, "requests that wait for the row", func() bool { return waiters(t, server) >= int64(width) })
		end()
		all.Wait()
		if lock, err := e.Inspect(t.Context(), "t"); err != nil || len(lock.Holders) > 0 {
			t.Fatalf("%d leases are left, error %v", len(lock.Holders), err)
		}
	}
	t.Logf("%d of %d acquires found their cancel", overtaken.Load(), rounds*width)
	if overtaken.Load() < int64(rounds) {
		t.Error("too few acquires were overtaken")
	}
}

// TestForeignTransaction checks that the leases of all other names are renewed in one batch while a
// foreign transaction has the row of one name, and 64 goroutines want that lock.
func TestForeignTransaction(t *testing.T) {
	server := testsvc.Postgres(t)
	e := open(t, urlOf(server, "postgres", "postgres", "&pool_max_conns=8"))
	var renewals []driver.ExtendRequest
	for i := range driver.MaxBatch {
		req := drivertest.Request(fmt.Sprint("lease ", i), time.Minute)
		drivertest.Granted(t, e, req)
		renewals = append(renewals, driver.ExtendRequest{Name: req.Name, LeaseID: req.LeaseID, TTL: time.Hour})
	}
	end := foreign(t, server, "lease 0")
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = e.Acquire(ctx, drivertest.Request("lease 0", time.Minute))
			}
		})
	}
	drivertest.Eventually(t, "acquires that wait for the row", func() bool { return waiters(t, server) >= 4 })
	for range 3 {
		limited, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		errs := e.Extend(limited, renewals)
		stop()
		if errs[0] == nil || errors.Is(errs[0], driver.ErrLost) {
			t.Errorf("the lease whose row is held: error %v", errs[0])
		}
		for i, err := range errs[1:] {
			if err != nil {
				t.Errorf("lease %d: %v", i+1, err)
			}
		}
	}
	if err := e.Release(t.Context(), driver.ReleaseRequest{Name: "lease 1", LeaseID: renewals[1].LeaseID}); err != nil {
		t.Errorf("release of another name: %v", err)
	}
	cancel()
	end()
	all.Wait()
	if errs := e.Extend(t.Context(), renewals[:1]); errs[0] != nil {
		t.Errorf("the lease whose row was held: %v", errs[0])
	}
}

// TestLockTimeout checks that a request gives up after waiting five seconds for a row, and has
// changed nothing.
func TestLockTimeout(t *testing.T) {
	server := testsvc.Postgres(t)
	e := open(t, urlOf(server, "postgres", "postgres", ""))
	drivertest.Cycle(t, e, "t")
	end := foreign(t, server, "t")
	_, err := e.Acquire(t.Context(), drivertest.Request("t", time.Minute))
	drivertest.WantIs(t, "acquire of a name whose row is held", err, driver.ErrUnavailable)
	end()
	drivertest.Cycle(t, e, "t")
}

// TestEarOpensAgain checks that waiters get a notice to look when the server ends the listening
// connection, and notices of grants on the next connection.
func TestEarOpensAgain(t *testing.T) {
	server := testsvc.Postgres(t)
	rawURL := urlOf(server, "postgres", "postgres", "")
	here, there := open(t, rawURL), open(t, rawURL)
	for opened := range 3 {
		held, waiter := drivertest.Request("t", time.Minute), drivertest.Request("t", time.Minute)
		waiter.Queue, waiter.WaiterTTL = true, time.Minute
		drivertest.Granted(t, here, held)
		w := there.Watch(waiter.LeaseID)
		drivertest.Held(t, there, waiter)
		if opened == 0 {
			toldToLook(t, w)
		}
		if n := number(t, server, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE '%"+listenerSuffix+"'"); n == 0 {
			t.Fatal("there is no ear")
		}
		toldToLook(t, w)
		drivertest.Release(t, here, held)
		drivertest.HandedOver(t, w)
		w.Stop()
		drivertest.Release(t, there, waiter)
	}
}

// toldToLook waits for the notice that an ear sends when it begins to listen.
func toldToLook(t *testing.T, w driver.Watch) {
	t.Helper()
	drivertest.Eventually(t, "a notice to look", func() bool {
		select {
		case n := <-w.C():
			return n.Token == 0
		default:
			return false
		}
	})
}

// TestCloseSendsNotices checks that the next waiter gets its notice although the program ends right
// after the release.
func TestCloseSendsNotices(t *testing.T) {
	server := testsvc.Postgres(t)
	rawURL := urlOf(server, "postgres", "postgres", "")
	there := open(t, rawURL)
	for round := range 10 {
		here := open(t, rawURL)
		held, waiter := drivertest.Request("t", time.Minute), drivertest.Request("t", time.Minute)
		waiter.Queue, waiter.WaiterTTL = true, time.Minute
		drivertest.Granted(t, here, held)
		w := there.Watch(waiter.LeaseID)
		drivertest.Held(t, there, waiter)
		if round == 0 {
			toldToLook(t, w)
		}
		drivertest.Release(t, here, held)
		_ = here.Close()
		drivertest.HandedOver(t, w)
		w.Stop()
		drivertest.Release(t, there, waiter)
	}
}

// A pair is an engine, and memlock as its model.
type pair struct {
	t           *testing.T
	real, model driver.Engine
	log         []string
	ids         []lockinfo.LeaseID
}

// same fails the test if the two answers differ.
func (p *pair) same(what string, real, model any) {
	p.t.Helper()
	p.log = append(p.log, what)
	if got, want := fmt.Sprint(real), fmt.Sprint(model); got != want {
		p.t.Fatalf("%s\nanswer %s, and memlock answers %s", strings.Join(p.log, "\n"), got, want)
	}
}

func classOf(err error) string { return fmt.Sprint(driver.Class(err)) }

// shape describes a lock without tokens and times.
func shape(t *testing.T, e driver.Engine, name string) string {
	lock, err := e.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprint(&b, lock.Mode, lock.QueueLength, ":")
	for _, h := range lock.Holders {
		fmt.Fprint(&b, h.LeaseID[:4], " ", h.Mode, " ", h.Released, ", ")
	}
	for _, q := range lock.Queue {
		fmt.Fprint(&b, " place ", q.LeaseID[:4], " ", q.Mode)
	}
	return b.String()
}

// step sends one random request to both engines.
func (p *pair) step() {
	ctx, name, id := p.t.Context(), pick([]string{"a", "b"}), pick(p.ids)
	engines := []driver.Engine{p.real, p.model}
	both := func(what string, do func(e driver.Engine) string) {
		p.same(fmt.Sprint(what, " ", name, " ", id[:4]), do(engines[0]), do(engines[1]))
	}
	switch rand.IntN(10) {
	case 0, 1, 2, 3:
		req := driver.AcquireRequest{
			Name: name, LeaseID: id, Mode: pick(sceneModes), TTL: time.Hour, First: rand.IntN(3) == 0, Once: rand.IntN(4) == 0,
			Queue: rand.IntN(3) > 0, WaiterTTL: time.Hour,
		}
		both(fmt.Sprintf("acquire %s first %t once %t queue %t", req.Mode, req.First, req.Once, req.Queue), func(e driver.Engine) string {
			reply, err := e.Acquire(ctx, req)
			return fmt.Sprint(reply.Outcome, classOf(err), reply.Place, reply.Queue, reply.Released, string(reply.Record))
		})
	case 4, 5:
		req := driver.ReleaseRequest{Name: name, LeaseID: id, Lost: rand.IntN(4) == 0}
		if rand.IntN(8) == 0 {
			req.KeepFor = time.Hour
		}
		if req.Cancel = rand.IntN(8) == 0; req.Cancel {
			p.ids[slices.Index(p.ids, id)] = lockinfo.NewLeaseID()
		}
		both(fmt.Sprint("release ", req.KeepFor, req.Cancel), func(e driver.Engine) string { return classOf(e.Release(ctx, req)) })
	case 6:
		req := driver.RefreshRequest{Name: name, LeaseID: id, WaiterTTL: pick([]time.Duration{0, time.Hour})}
		both(fmt.Sprint("refresh ", req.WaiterTTL), func(e driver.Engine) string {
			r := e.(driver.Queuer).Refresh(ctx, []driver.RefreshRequest{req})[0]
			return fmt.Sprint(r.Outcome, classOf(r.Err), r.Place, r.Queue)
		})
	case 7:
		both("downgrade", func(e driver.Engine) string {
			return classOf(e.(driver.Downgrader).Downgrade(ctx, driver.DowngradeRequest{Name: name, LeaseID: id}))
		})
	case 8:
		req := driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: name, Token: driver.MaxToken, Older: true, Closed: rand.IntN(2) == 0, Author: "me"}
		both(fmt.Sprint("break ", req.Closed), func(e driver.Engine) string {
			ended, err := e.(driver.Breaker).Break(ctx, req)
			var ids []string
			for _, b := range ended {
				ids = append(ids, string(b.LeaseID[:4]))
			}
			return fmt.Sprint(ids, classOf(err))
		})
	case 9:
		req := driver.CompleteRequest{Name: name, LeaseID: id, Record: []byte("done"), Retention: time.Hour, Keep: rand.IntN(2) == 0}
		both(fmt.Sprint("complete ", req.Keep), func(e driver.Engine) string { return classOf(e.(driver.Recorder).Complete(ctx, req)) })
		if rand.IntN(3) > 0 {
			both("forget", func(e driver.Engine) string {
				found, err := e.(driver.Recorder).Forget(ctx, name)
				return fmt.Sprint(found, err)
			})
		}
	}
	both("shape", func(e driver.Engine) string { return shape(p.t, e, name) })
}

// TestAsMemory checks that each of thousands of random requests has the same answer, state and
// events as in memlock.
func TestAsMemory(t *testing.T) {
	server := testsvc.Postgres(t)
	games := 25
	if testing.Short() {
		games = 4
	}
	for game := range games {
		model := mem.New(&mem.Options{History: true})
		p := &pair{t: t, real: open(t, urlOf(server, "postgres", "postgres", fmt.Sprintf("&history=1&schema=game%d", game%2))), model: model}
		execute(t, server, "postgres", fmt.Sprintf("DELETE FROM game%[1]d.lock; DELETE FROM game%[1]d.lease; DELETE FROM game%[1]d.place; DELETE FROM game%[1]d.event; DELETE FROM game%[1]d.record; DELETE FROM game%[1]d.broken", game%2))
		for range 6 {
			p.ids = append(p.ids, lockinfo.NewLeaseID())
		}
		for range 60 {
			p.step()
		}
		for _, name := range []string{"a", "b"} {
			events := func(e driver.Engine) (kinds []string) {
				all, err := e.(driver.Historian).History(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range all {
					kinds = append(kinds, fmt.Sprint(v.Kind, " ", v.Mode))
				}
				return kinds
			}
			p.same("history "+name, events(p.real), events(p.model))
		}
		_ = p.real.Close()
		_ = model.Close()
	}
}

// TestFeedBeginsAfterWriters checks the gap with which a feed begins: an event of a transaction
// that did not know the listener is committed before that gap.
func TestFeedBeginsAfterWriters(t *testing.T) {
	server := testsvc.Postgres(t)
	e := open(t, urlOf(server, "postgres", "postgres", "&history=1"))
	conn, err := pgx.Connect(t.Context(), server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "SELECT holdfast.acquire('t', 'id', 0, 0, 0, 1000000, '{}', 0, false, false, false, 0, '', true)")
	}
	if err != nil {
		t.Fatal(err)
	}
	gaps := make(chan struct{}, 8)
	defer e.OnEvent(func(v lockinfo.HistoryEvent) {
		if v.Kind == lockinfo.HistoryGap {
			gaps <- struct{}{}
		}
	})()
	drivertest.Eventually(t, "the row of the listener", func() bool { return number(t, server, "SELECT count(*) FROM holdfast.listener") == 1 })
	select {
	case <-gaps:
		t.Error("the feed has begun before the transaction has ended")
	case <-time.After(100 * time.Millisecond):
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gaps:
	case <-time.After(drivertest.Patience):
		t.Error("the feed has not begun")
	}
}
