package sqlitelock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/bell"
)

// How long a request waits for other processes. A transaction takes well under a
// millisecond, so a wait of busyLimit means that a process is stopped or broken.
const (
	busyLimit    = 5 * time.Second
	busyFirst    = 200 * time.Microsecond
	busyInterval = 5 * time.Millisecond
)

// A reader reads the database at one reading of the clock.
type reader struct {
	sql    *conn
	bootID string
	now    instant
}

func (e *engine) reader(c *conn) (reader, error) {
	now, err := e.clock.now()
	return reader{c, e.clock.bootID, now}, err
}

// atOnce runs do in a transaction that only reads, maybe inside another.
func (r *reader) atOnce(do func() error) error {
	if err := r.sql.run(beginReadSQL); err != nil {
		return err
	}
	defer func() { _ = r.sql.run(endReadSQL) }()
	return do()
}

// A tx is one request in a write transaction. INVARIANT I8: its clock is read under the write lock.
// With an older reading, an expired lease would count as live, and a new expiry would be too early.
type tx struct {
	reader
	history bool           // events are recorded
	added   int            // rows, for the sweep
	notices []bell.Message // to be sent after the commit

	steps int    // that the transaction has made so far, of maxSteps
	again bool   // the request is not yet decided
	rest  string // the request is decided, but this name is not yet settled

	// refusal is the error for a refused request. Its transaction is committed nevertheless,
	// because it has purged rows.
	refusal error
}

// refuse sets the request's error. It returns nil, which the function that transact runs must
// return.
func (t *tx) refuse(err error) error {
	t.refusal = err
	return nil
}

// tell sends a notice to the watches of id, once the transaction is committed.
func (t *tx) tell(id lockinfo.LeaseID, notice driver.Notice) {
	t.notices = append(t.notices, bell.Message{ID: id, Notice: notice})
}

// transact runs do in a write transaction, and commits if do returns nil. It blocks while other
// requests and processes write, until ctx ends, but at most for busyLimit. Before the commit no
// outcome is unknown: an error of do, or the end of ctx, rolls everything back.
//
// Statements run without ctx: they take microseconds, and an interrupt at the wrong moment would
// needlessly leave the outcome unknown.
func (e *engine) transact(ctx context.Context, do func(t *tx) error) error {
	return e.write(&request{ctx: ctx, do: do, names: 1})
}

// transactAll is transact for a request about several names.
func (e *engine) transactAll(ctx context.Context, names int, do func(t *tx) error) error {
	return e.write(&request{ctx: ctx, do: do, names: names})
}

// transactDurably is transact for data that must survive a power cut: this commit and all
// earlier ones are flushed to the disk.
func (e *engine) transactDurably(ctx context.Context, do func(t *tx) error) error {
	return e.write(&request{ctx: ctx, do: do, names: 1, durable: true})
}

// write carries out a request. Then it hands over the locks that the request has freed. If that
// fails, the next request for the name continues.
func (e *engine) write(r *request) error {
	if err := e.enter(r.ctx); err != nil {
		return err
	}
	defer e.users.Done()
	t, err := e.proceed(r)
	if err != nil {
		return err
	}
	if t.rest != "" {
		_, _ = e.proceed(&request{ctx: r.ctx, names: 1, do: func(next *tx) error {
			_, err := next.settle(t.rest, "")
			return err
		}})
	}
	return t.refusal
}

// proceed carries out a request, in as many transactions as necessary, and sends the notices of
// each. It returns the last transaction.
func (e *engine) proceed(r *request) (*tx, error) {
	for {
		t, err := e.submit(r)
		if err != nil {
			return nil, err
		}
		e.watches.Send(t.notices, e.bell)
		if t.again || t.rest != "" {
			time.Sleep(busyFirst) // other processes retry for the write lock now and then
		}
		if !t.again {
			return t, nil
		}
	}
}

// query runs a request that only reads. It waits while the database is busy, which for readers is
// only while another process opens or closes it.
func (e *engine) query(ctx context.Context, do func(r reader) error) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.users.Done()
	return refused(e.patient(ctx, func() error { return e.readCurrent(do) }))
}

// readCurrent is read, and fails if other processes use different files. INVARIANT I1.
func (e *engine) readCurrent(do func(r reader) error) error {
	if err := e.files.Same(); err != nil {
		return err
	}
	return e.read(do)
}

// read runs do with a read-only connection.
func (e *engine) read(do func(r reader) error) (err error) {
	c := <-e.readers
	defer func() { e.readers <- c }()
	if c == nil {
		if c, err = e.openReader(); err != nil {
			return err
		}
	}
	r, err := e.reader(c)
	switch {
	case err != nil:
		return err
	case e.system:
		return e.readOurs(r, do)
	}
	return do(r)
}

// answer makes a request by transact, transactDurably or query. It returns the result of do, or the
// zero value if the request fails.
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

// patient repeats do while the database is busy. SQLite's own wait (busy_timeout) does not end with
// ctx, and its pauses grow to 100 ms.
func (e *engine) patient(ctx context.Context, do func() error) error {
	err := do()
	if !isBusy(err) {
		return err
	}
	e.files.Wait(true)
	defer e.files.Wait(false)
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
