package sqlitelock

import (
	"context"
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

// A tx is one request in a write transaction. INVARIANT I8: its clock is read under
// the write lock. A reading from before the wait for it would be old: it would
// take a lease for live that is over, and record an expiry that is too early.
type tx struct {
	reader
	history bool      // what happens is written down
	added   int       // rows, for the sweep
	notices []message // to be sent after the commit

	steps int    // that the transaction has made so far, of maxSteps
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
	return e.write(&request{ctx: ctx, do: do, names: 1})
}

// transactAll is transact for a request about several names.
func (e *Engine) transactAll(ctx context.Context, names int, do func(t *tx) error) error {
	return e.write(&request{ctx: ctx, do: do, names: names})
}

// transactDurably is transact for what must outlive a power cut: the commit,
// and those before it, are flushed to the disk.
func (e *Engine) transactDurably(ctx context.Context, do func(t *tx) error) error {
	return e.write(&request{ctx: ctx, do: do, names: 1, durable: true})
}

// write has a request carried out, in as many transactions as it takes until it is
// decided. Then it serves those for whom the request has made room. That may
// fail: the next request about the name goes on with it.
func (e *Engine) write(r *request) error {
	if err := e.enter(r.ctx); err != nil {
		return err
	}
	defer e.users.Done()
	t, err := e.proceed(r)
	for err == nil && t.again {
		t, err = e.proceed(r)
	}
	if err != nil {
		return err
	}
	for rest := t; rest.rest != "" || rest.again; {
		name := t.rest
		rest, err = e.proceed(&request{ctx: r.ctx, names: 1, do: func(t *tx) error {
			_, err := t.settle(name, "")
			return err
		}})
		if err != nil {
			break
		}
	}
	return t.refusal
}

// proceed is one transaction of a request. It sends its notices.
func (e *Engine) proceed(r *request) (*tx, error) {
	t, err := e.oneTurn(r)
	if err != nil {
		return nil, err
	}
	e.send(t.notices)
	if t.again || t.rest != "" {
		time.Sleep(busyFirst) // others need the write lock, and ask for it now and then
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
	if e.system {
		return e.readOurs(c, do)
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
	err := do()
	if !isBusy(err) {
		return err
	}
	e.witness.waits(e.path, true)
	defer e.witness.waits(e.path, false)
	limit := time.After(busyLimit)
	for began := time.Now(); time.Since(began) < eagerTime; {
		e.brief(eagerPause/2 + rand.N(eagerPause))
		if err = do(); !isBusy(err) || ctx.Err() != nil {
			break
		}
	}
	for pause := busyFirst; isBusy(err); pause = min(2*pause, busyInterval) {
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return interrupted(ctx)
		case <-e.closing:
			return driver.ErrClosed
		case <-limit:
			return fmt.Errorf("%w: another process has kept the database busy for %s: see whether one is stopped: %w", driver.ErrUnavailable, busyLimit, err)
		}
		err = do()
	}
	return err
}
