package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// How long a request waits for other processes that use the database. A
// transaction takes well under a millisecond, so that a wait of busyLimit
// means that something is wrong with one of them.
const (
	busyLimit    = 5 * time.Second
	busyFirst    = 200 * time.Microsecond
	busyInterval = 5 * time.Millisecond
)

// A reader reads the database as of one reading of the clock.
type reader struct {
	sql    *conn
	bootID string
	now    instant
}

func (e *Engine) reader(c *conn) (reader, error) {
	now, err := e.clock.now()
	return reader{c, e.clock.bootID, now}, err
}

// A tx is one write transaction. INVARIANT I8: its clock is read under the
// write lock. A reading from before the wait for it would be old: it would
// take a lease for live that is over, and record an expiry that is too early.
type tx struct {
	reader
	added   int       // rows, for the sweep
	notices []message // to be sent after the commit

	steps int    // made so far, of maxSteps
	again bool   // the request is not decided yet
	rest  string // the request is decided, and this name not settled yet

	// refusal is the answer to a request that is not carried out, in a
	// transaction that is committed for what was noticed on the way.
	refusal error
}

// refuse answers the request with err. It returns nil, to be returned by the
// function that transact runs.
func (t *tx) refuse(err error) error {
	t.refusal = err
	return nil
}

// tell sends a notice to those who watch id, once the transaction is committed.
func (t *tx) tell(id driver.LeaseID, notice driver.Notice) {
	t.notices = append(t.notices, message{id, notice})
}

// transact runs do inside a write transaction and commits if it returns nil.
// It blocks while other requests and processes write, until ctx ends or
// busyLimit is over. Nothing is unknown before the commit: an error of do, or
// the end of ctx, rolls everything back.
//
// Statements run without ctx: they take microseconds, and an interrupt at
// the wrong one would leave the outcome unknown for nothing.
func (e *Engine) transact(ctx context.Context, do func(t *tx) error) error {
	return e.waitTurn(ctx, func() (*tx, error) { return e.inTurn(ctx, do) })
}

// transactDurably is transact for what must outlive a power cut: the commit,
// and those before it, are flushed to the disk.
func (e *Engine) transactDurably(ctx context.Context, do func(t *tx) error) error {
	return e.waitTurn(ctx, func() (*tx, error) {
		if err := e.conn.execute(`PRAGMA synchronous = FULL`); err != nil {
			return nil, refused(err)
		}
		defer func() { _ = e.conn.execute(settings) }()
		return e.inTurn(ctx, do)
	})
}

// waitTurn runs write when it is this request's turn, until the request is
// decided. Then it serves those for whom the request has made room. That may
// fail: the next request about the name goes on with it.
func (e *Engine) waitTurn(ctx context.Context, write func() (*tx, error)) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.users.Done()
	t, err := e.oneTurn(ctx, write)
	for err == nil && t.again {
		t, err = e.oneTurn(ctx, write)
	}
	if err != nil {
		return err
	}
	for rest := t; rest.rest != "" || rest.again; {
		name := t.rest
		rest, err = e.oneTurn(ctx, func() (*tx, error) {
			return e.inTurn(ctx, func(t *tx) error { _, err := t.settle(name, ""); return err })
		})
		if err != nil {
			break
		}
	}
	return t.refusal
}

// oneTurn waits for the turn, runs one transaction, and sends its notices.
func (e *Engine) oneTurn(ctx context.Context, write func() (*tx, error)) (*tx, error) {
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, interrupted(ctx)
	case <-e.closing:
		return nil, driver.ErrClosed
	}
	t, err := write()
	<-e.turn
	if err != nil {
		return nil, err
	}
	e.send(t.notices)
	if t.again || t.rest != "" {
		time.Sleep(busyFirst) // others need the write lock, and ask for it now and then
	}
	return t, nil
}

// inTurn is transact for whoever has the turn.
func (e *Engine) inTurn(ctx context.Context, do func(t *tx) error) (*tx, error) {
	if err := e.patient(ctx, func() error { return e.conn.run(beginSQL) }); err != nil {
		return nil, refused(err)
	}
	t := &tx{}
	var err error
	if t.reader, err = e.reader(e.conn); err == nil {
		err = e.files.same(e.path)
	}
	if err == nil {
		err = do(t)
	}
	if t.again = errors.Is(err, errUnfinished); t.again {
		err = nil
	}
	if err == nil {
		err = e.sweep(t)
	}
	if err == nil && ctx.Err() != nil {
		err = interrupted(ctx)
	}
	if err != nil {
		_ = e.conn.run(rollbackSQL) // fails only if SQLite has rolled back itself
		return nil, refused(err)
	}
	if err := e.conn.run(commitSQL); err != nil {
		_ = e.conn.run(rollbackSQL)
		return nil, fmt.Errorf("the commit failed, and may show after a crash: %w", err)
	}
	// INVARIANT I1: what others may not have seen is not answered. If the files
	// are in place now, they were when the commit was written.
	if err := e.files.same(e.path); err != nil {
		return nil, fmt.Errorf("the commit may be lost: %w", err)
	}
	return t, nil
}

// query runs a request that only reads. It waits while the database is busy: for
// readers it is only while another process opens or closes it.
func (e *Engine) query(ctx context.Context, do func(r reader) error) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.users.Done()
	err := e.files.same(e.path)
	if err == nil {
		err = e.patient(ctx, func() error {
			return e.read(func(c *conn) error {
				r, err := e.reader(c)
				if err != nil {
					return err
				}
				return do(r)
			})
		})
	}
	return refused(err)
}

// read runs do with a connection that only reads.
func (e *Engine) read(do func(c *conn) error) (err error) {
	c := <-e.readers
	defer func() { e.readers <- c }()
	if c == nil {
		if c, err = e.openReader(); err != nil {
			return err
		}
	}
	return do(c)
}

// answer makes a request by transact, transactDurably or query, and returns what
// do answers; nothing if the request fails.
func answer[On, T any](ctx context.Context, request func(context.Context, func(On) error) error, do func(On) (T, error)) (T, error) {
	var a, none T
	err := request(ctx, func(on On) (err error) {
		a, err = do(on)
		return err
	})
	if err != nil {
		return none, err
	}
	return a, nil
}

// patient repeats do while it fails because the database is busy. SQLite's
// own waiting (busy_timeout) does not end with ctx, and grows to 100 ms.
func (e *Engine) patient(ctx context.Context, do func() error) error {
	var limit <-chan time.Time
	for pause := busyFirst; ; pause = min(2*pause, busyInterval) {
		err := do()
		if !isBusy(err) {
			return err
		}
		if limit == nil {
			limit = time.After(busyLimit)
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return interrupted(ctx)
		case <-e.closing:
			return driver.ErrClosed
		case <-limit:
			return fmt.Errorf("%w: another process has kept the database busy for %s: see whether one is stopped: %w", driver.ErrUnavailable, busyLimit, err)
		}
	}
}
