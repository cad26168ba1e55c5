package pglock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A heldLease is a lease that an engine has granted.
type heldLease struct {
	req   driver.AcquireRequest
	token uint64
}

// A turnLease is the lease of a turn in a cohort.
type turnLease struct{ heldLease }

func (turnLease) InCohort() bool { return true }

func (l heldLease) Name() string         { return l.req.Name }
func (l heldLease) ID() lockinfo.LeaseID { return l.req.LeaseID }

// A program has an engine, a pool of its own in the same database, and a rival.
type program struct {
	engine *Engine
	pool   *pgxpool.Pool
	rival  *holdfast.Client
	server *testsvc.Database
}

func newProgram(t *testing.T) *program {
	t.Helper()
	server := testsvc.Postgres(t)
	p := &program{engine: open(t, server.URL), server: server}
	var err error
	if p.pool, err = pgxpool.New(t.Context(), server.URL+"&pool_max_conns=16"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.pool.Close)
	if p.rival, err = holdfast.New(open(t, server.URL), &holdfast.Options{SharedEngine: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.rival.Close() })
	return p
}

// begin acquires a lock, and begins a transaction that holds it. It tries again if the lease is
// lost before, as on a busy machine.
func (p *program) begin(t *testing.T, name string, ttl time.Duration) (l heldLease, tx pgx.Tx) {
	t.Helper()
	drivertest.Eventually(t, "the transaction holds the lease", func() bool {
		l.req = drivertest.Request(name, ttl)
		l.token = drivertest.Granted(t, p.engine, l.req)
		var err error
		if tx, err = p.pool.Begin(t.Context()); err == nil {
			err = p.engine.Hold(t.Context(), tx, l)
		}
		if err != nil {
			t.Logf("%s: %v", name, err)
			_ = tx.Rollback(t.Context())
		}
		return err == nil
	})
	return l, tx
}

// ends are the ways in which a lease ends while its holder's transaction is open.
var ends = map[string]func(t *testing.T, p *program, l heldLease){
	"expired": func(*testing.T, *program, heldLease) { time.Sleep(heldTTL) }, // the holder is stopped
	"released": func(t *testing.T, p *program, l heldLease) {
		drivertest.Release(t, p.engine, l.req)
	},
	"cancelled": func(t *testing.T, p *program, l heldLease) {
		if err := p.engine.Release(t.Context(), driver.ReleaseRequest{Name: l.req.Name, LeaseID: l.req.LeaseID, Cancel: true}); err != nil {
			t.Error(err)
		}
	},
	"broken": func(t *testing.T, p *program, l heldLease) {
		broken, err := p.engine.Break(t.Context(), driver.BreakRequest{ID: lockinfo.NewLeaseID(), Name: l.req.Name, Token: l.token, Author: "ada"})
		if err != nil || len(broken) != 1 {
			t.Errorf("broken: %v, %v", broken, err)
		}
	},
	"downgraded": func(t *testing.T, p *program, l heldLease) {
		if err := p.engine.Downgrade(t.Context(), driver.DowngradeRequest{Name: l.req.Name, LeaseID: l.req.LeaseID}); err != nil {
			t.Error(err)
		}
		time.Sleep(heldTTL)
	},
}

// heldTTL is the TTL of leases that expire in the test.
const heldTTL = time.Second

// INVARIANT I1: until a transaction that holds the lease has ended, no other client is granted the
// lock, however the lease ended meanwhile: 200 of 200. Then the name becomes free soon.
func TestHold(t *testing.T) {
	const rounds = 40 // for each of the five ways
	p := newProgram(t)
	var mu sync.Mutex
	var slowest time.Duration
	for way, end := range ends {
		t.Run(way, func(t *testing.T) {
			var all sync.WaitGroup
			defer all.Wait()
			atOnce := make(chan struct{}, 14)
			for i := range rounds {
				atOnce <- struct{}{}
				all.Go(func() {
					defer func() { <-atOnce }()
					if t.Failed() {
						return
					}
					opened := holdAndEnd(t, p, fmt.Sprintf("%s/%d", way, i), i%2 == 0, end)
					mu.Lock()
					defer mu.Unlock()
					slowest = max(slowest, opened)
				})
			}
		})
	}
	t.Logf("a name was granted %s after the commit at the latest", slowest)
	t.Run("renewals", p.renewalsPass)
	t.Run("errors", p.holdErrors)
	t.Run("database/sql", p.holdSQL)
}

// holdAndEnd returns how long after the commit the name was granted to another client, which waits
// for it or requests it after the lease has ended.
func holdAndEnd(t *testing.T, p *program, name string, waits bool, end func(*testing.T, *program, heldLease)) time.Duration {
	ttl := time.Minute
	if strings.HasPrefix(name, "expired/") || strings.HasPrefix(name, "downgraded/") {
		ttl = heldTTL
	}
	l, tx := p.begin(t, name, ttl)
	granted, over := make(chan time.Time, 1), make(chan struct{})
	wait := func() {
		defer close(over)
		lease, err := p.rival.Acquire(t.Context(), name, nil)
		granted <- time.Now()
		if err == nil {
			err = lease.Release(t.Context())
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if waits {
		go wait()
	}
	end(t, p, l)
	shared := drivertest.Request(name, heldTTL)
	shared.Mode = lockinfo.Shared
	for _, req := range []driver.AcquireRequest{drivertest.Request(name, heldTTL), shared} {
		if reply, err := p.engine.Acquire(t.Context(), req); err != nil || reply.Outcome == driver.Granted {
			t.Errorf("%s is granted while the transaction is open: %v, %v", name, reply.Outcome, err)
		}
	}
	if reply, err := p.engine.AcquireAll(t.Context(), []driver.AcquireRequest{drivertest.Request(name, heldTTL)}); err != nil || reply.Outcome == driver.Granted {
		t.Errorf("%s is granted with others while the transaction is open: %v, %v", name, reply.Outcome, err)
	}
	if !waits {
		go wait()
	}
	select {
	case <-granted:
		t.Errorf("%s is granted to a waiter while the transaction is open", name)
		<-over
		_ = tx.Rollback(t.Context())
		return 0
	case <-time.After(300 * time.Millisecond):
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	began := time.Now()
	select {
	case at := <-granted:
		<-over
		return at.Sub(began)
	case <-time.After(20 * time.Second):
		t.Errorf("%s does not open after the commit", name)
		return 0
	}
}

// INVARIANT I9: renewals of the lease do not wait for the transaction.
func (p *program) renewalsPass(t *testing.T) {
	l, tx := p.begin(t, "renewed", time.Minute)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	other := drivertest.Request("other", time.Minute)
	drivertest.Granted(t, p.engine, other)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for i := range 20 {
		ttl := time.Minute + time.Duration(i)*time.Second
		for _, err := range p.engine.Extend(ctx, []driver.ExtendRequest{
			{Name: l.req.Name, LeaseID: l.req.LeaseID, TTL: ttl}, {Name: other.Name, LeaseID: other.LeaseID, TTL: ttl},
		}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.engine.Hold(t.Context(), tx, l); err != nil { // again, after renewals
		t.Error(err)
	}
}

// TestHoldRaces checks that while a lease is released and granted to another client, Hold either
// comes first and blocks the grant, or fails.
func TestHoldRaces(t *testing.T) {
	p := newProgram(t)
	held, lost := 0, 0
	for i := range 200 {
		name := fmt.Sprintf("race/%d", i%4)
		req := drivertest.Request(name, time.Minute)
		drivertest.Eventually(t, "the name is free", func() bool {
			reply, err := p.engine.Acquire(t.Context(), req)
			return err == nil && reply.Outcome == driver.Granted
		})
		tx, err := p.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rival := drivertest.Request(name, time.Minute)
		var granted, over atomic.Bool
		var all sync.WaitGroup
		all.Go(func() {
			drivertest.Release(t, p.engine, req)
			for !granted.Load() && !over.Load() {
				reply, err := p.engine.Acquire(t.Context(), rival)
				if err != nil {
					t.Error(err)
					return
				}
				granted.Store(reply.Outcome == driver.Granted)
			}
		})
		time.Sleep(time.Duration(i%20) * 100 * time.Microsecond)
		switch err := p.engine.Hold(t.Context(), tx, heldLease{req: req}); {
		case err == nil:
			held++
			time.Sleep(time.Millisecond)
			if granted.Load() {
				t.Errorf("%d: a rival was granted the lock that the transaction holds", i)
			}
		case errors.Is(err, driver.ErrLost):
			lost++
		default:
			t.Error(err)
		}
		over.Store(true)
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
		all.Wait()
		if granted.Load() {
			drivertest.Release(t, p.engine, rival)
		}
	}
	if held == 0 || lost == 0 {
		t.Errorf("%d times Hold came first, and %d times too late: want both", held, lost)
	}
}

// Each error is definite.
func (p *program) holdErrors(t *testing.T) {
	execute(t, p.server, "postgres", `CREATE ROLE guest LOGIN`)
	req := drivertest.Request("errors", time.Minute)
	drivertest.Granted(t, p.engine, req)
	other := drivertest.Request("errors", time.Minute)
	for _, c := range []struct {
		what string
		open func() (pgx.Tx, error)
		l    Lease
		want error
	}{
		{"no transaction", func() (pgx.Tx, error) { return nil, nil }, heldLease{req: req}, driver.ErrInvalid},
		{"no lease", func() (pgx.Tx, error) { return p.pool.Begin(t.Context()) }, nil, driver.ErrInvalid},
		{"a lease that may be handed on", func() (pgx.Tx, error) { return p.pool.Begin(t.Context()) }, turnLease{heldLease{req: req}}, driver.ErrInvalid},
		{"another lease", func() (pgx.Tx, error) { return p.pool.Begin(t.Context()) }, heldLease{req: other}, driver.ErrLost},
		{"an unknown name", func() (pgx.Tx, error) { return p.pool.Begin(t.Context()) }, heldLease{req: drivertest.Request("unknown", time.Minute)}, driver.ErrLost},
		{"serializable", func() (pgx.Tx, error) {
			return p.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.Serializable})
		}, heldLease{req: req}, driver.ErrInvalid},
		{"without rights", func() (pgx.Tx, error) {
			conn, err := pgx.Connect(t.Context(), urlOf(p.server, "guest", "postgres", ""))
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
			return conn.Begin(t.Context())
		}, heldLease{req: req}, driver.ErrPermission},
	} {
		tx, err := c.open()
		if err != nil {
			t.Fatal(err)
		}
		err = p.engine.Hold(t.Context(), tx, c.l)
		drivertest.WantIs(t, c.what, err, c.want)
		if tx != nil {
			_ = tx.Rollback(t.Context())
		}
	}
}

// The same for database/sql, and for a shared lease.
func (p *program) holdSQL(t *testing.T) {
	db, err := sql.Open("pgx", p.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	req := drivertest.Request("sql", time.Minute)
	req.Mode = lockinfo.Shared
	drivertest.Granted(t, p.engine, req)
	tx, err := db.BeginTx(t.Context(), nil)
	if err == nil {
		err = p.engine.HoldSQL(t.Context(), tx, heldLease{req: req})
	}
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Release(t, p.engine, req)
	drivertest.Held(t, p.engine, drivertest.Request("sql", time.Minute))
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	drivertest.Granted(t, p.engine, drivertest.Request("sql", time.Minute))
	drivertest.WantIs(t, "no transaction", p.engine.HoldSQL(t.Context(), nil, heldLease{req: req}), driver.ErrInvalid)
	tx, err = db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	drivertest.WantIs(t, "repeatable read", p.engine.HoldSQL(t.Context(), tx, heldLease{req: req}), driver.ErrInvalid)
	_ = tx.Rollback()
}
