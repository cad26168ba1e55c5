package fencetest

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/sqlfence"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// A counter is a number that workers read, increment and write. Each of its protocols returns nil
// if and only if the write was acknowledged, and calls pause between the read and the write.
type counter interface {
	value(t *testing.T) int
	unfenced(ctx context.Context, c fence.Claim, pause func()) error
	checkOnWrite(ctx context.Context, c fence.Claim, pause func()) error
	advanceFirst(ctx context.Context, c fence.Claim, pause func()) error
}

const (
	enough   = 60               // updates, so that the test shows something
	patience = 30 * time.Second // for a slow machine to get so far
)

// shown returns how long each protocol runs.
func shown() time.Duration { return soak.For(1500*time.Millisecond, 6*time.Second) }

// lostUpdates runs 8 workers under a bad lock and returns how many of the
// acknowledged additions the counter lacks.
func lostUpdates(t *testing.T, name string, n counter, add func(context.Context, fence.Claim, func()) error, length time.Duration) int {
	t.Helper()
	before := n.value(t)
	lock := &badLock{ttl: 4 * time.Millisecond}
	pause := func() { time.Sleep(time.Duration(rand.Int64N(int64(6 * time.Millisecond)))) }
	var mu sync.Mutex
	var acked, refused, repeated int
	var wg sync.WaitGroup
	end := time.Now().Add(length)
	last := end.Add(patience)
	goOn := func() bool {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		return now.Before(end) || acked < enough && now.Before(last)
	}
	for range 8 {
		wg.Go(func() {
			for goOn() {
				c := lock.acquire()
				err := add(t.Context(), c, pause)
				lock.release(c)
				mu.Lock()
				switch {
				case err == nil:
					acked++
				case errors.Is(err, fence.ErrStale):
					refused++
				case repeatable(err):
					repeated++
				default:
					t.Errorf("%s: %v", name, err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	lost := acked - (n.value(t) - before)
	t.Logf("%-28s %5d acknowledged, %5d refused, %d rolled back by the database, %4d lost (%.1f %%)", name, acked, refused, repeated, lost, 100*float64(lost)/float64(max(acked, 1)))
	if acked < enough {
		t.Errorf("%s: %d acknowledged: too few to show anything", name, acked)
	}
	return lost
}

// wantLostUpdates runs the three protocols. The first two must lose updates, which shows that a
// loss of the third would be found.
func wantLostUpdates(t *testing.T, n counter, length time.Duration) {
	t.Helper()
	if lostUpdates(t, "unfenced", n, n.unfenced, length) <= 0 {
		t.Error("unfenced: no update was lost: the lock is not bad enough to show anything")
	}
	if lostUpdates(t, "check on write alone", n, n.checkOnWrite, length) <= 0 {
		t.Error("check on write alone: no update was lost: the lock is not bad enough to show anything")
	}
	if lost := lostUpdates(t, "advance before read", n, n.advanceFirst, length); lost != 0 {
		t.Errorf("advance before read: %d updates lost, want 0", lost)
	}
}

func testLostUpdates(t *testing.T, s *store) {
	s.exec(t, `CREATE TABLE counters (id integer PRIMARY KEY, n integer NOT NULL, fence bigint NOT NULL DEFAULT 0)`)
	s.exec(t, `INSERT INTO counters (id, n) VALUES (1, 0), (2, 0)`)
	level := sql.LevelReadCommitted
	if s.dialect == sqlfence.SQLite {
		level = sql.LevelDefault
	}
	t.Run("table", func(t *testing.T) {
		n := sqlCounter{s, level}
		wantLostUpdates(t, n, shown())
		if lost := lostUpdates(t, "advance, all in one", n, n.oneTransaction, shown()); lost != 0 {
			t.Errorf("one transaction that begins with Advance: %d updates lost, want 0", lost)
		}
	})
	t.Run("column", func(t *testing.T) { wantLostUpdates(t, columnCounter{s}, shown()) })
}

// A sqlCounter is row 1 of the table counters, guarded by marks.
type sqlCounter struct {
	*store
	level sql.IsolationLevel
}

func (n sqlCounter) value(t *testing.T) int {
	v, err := n.read(t.Context(), n.db)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (n sqlCounter) read(ctx context.Context, tx sqlfence.Tx) (v int, err error) {
	err = tx.QueryRowContext(ctx, `SELECT n FROM counters WHERE id = 1`).Scan(&v)
	return v, err
}

func (n sqlCounter) write(ctx context.Context, tx sqlfence.Tx, v int) error {
	_, err := tx.ExecContext(ctx, n.sql(`UPDATE counters SET n = $1 WHERE id = 1`), v)
	return err
}

func (n sqlCounter) unfenced(ctx context.Context, _ fence.Claim, pause func()) error {
	v, err := n.read(ctx, n.db)
	if err != nil {
		return err
	}
	pause()
	return n.write(ctx, n.db, v+1)
}

// checkOnWrite is a guarded write after an unguarded read.
func (n sqlCounter) checkOnWrite(ctx context.Context, c fence.Claim, pause func()) error {
	v, err := n.read(ctx, n.db)
	if err != nil {
		return err
	}
	pause()
	return n.guardedWrite(ctx, c, v+1)
}

// advanceFirst advances in a separate transaction, so that the pause blocks no other worker.
func (n sqlCounter) advanceFirst(ctx context.Context, c fence.Claim, pause func()) error {
	if err := n.once(ctx, func(tx *sql.Tx) error { return n.dialect.Advance(ctx, tx, "counter", c) }); err != nil {
		return err
	}
	return n.checkOnWrite(ctx, c, pause)
}

// oneTransaction is the protocol that the documentation recommends.
func (n sqlCounter) oneTransaction(ctx context.Context, c fence.Claim, pause func()) error {
	return n.once(ctx, func(tx *sql.Tx) error {
		if err := n.dialect.Advance(ctx, tx, "counter", c); err != nil {
			return err
		}
		v, err := n.read(ctx, tx)
		if err != nil {
			return err
		}
		pause()
		return n.write(ctx, tx, v+1)
	})
}

func (n sqlCounter) guardedWrite(ctx context.Context, c fence.Claim, v int) error {
	return n.once(ctx, func(tx *sql.Tx) error {
		if err := n.dialect.Advance(ctx, tx, "counter", c); err != nil {
			return err
		}
		return n.write(ctx, tx, v)
	})
}

func (n sqlCounter) once(ctx context.Context, work func(*sql.Tx) error) error {
	tx, err := n.db.BeginTx(ctx, &sql.TxOptions{Isolation: n.level})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// A columnCounter is row 2 of the table counters, guarded by its own column.
// Each statement commits by itself.
type columnCounter struct{ *store }

func (n columnCounter) value(t *testing.T) int {
	v, err := n.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (n columnCounter) read(ctx context.Context) (v int, err error) {
	err = n.db.QueryRowContext(ctx, `SELECT n FROM counters WHERE id = 2`).Scan(&v)
	return v, err
}

func (n columnCounter) unfenced(ctx context.Context, _ fence.Claim, pause func()) error {
	v, err := n.read(ctx)
	if err != nil {
		return err
	}
	pause()
	_, err = n.db.ExecContext(ctx, n.sql(`UPDATE counters SET n = $1 WHERE id = 2`), v+1)
	return err
}

func (n columnCounter) checkOnWrite(ctx context.Context, c fence.Claim, pause func()) error {
	v, err := n.read(ctx)
	if err != nil {
		return err
	}
	pause()
	token := int64(c.Token())
	return n.update(ctx, c, `UPDATE counters SET fence = $1, n = $2 WHERE id = 2 AND fence <= $3`, token, v+1, token)
}

func (n columnCounter) advanceFirst(ctx context.Context, c fence.Claim, pause func()) error {
	token := int64(c.Token())
	if err := n.update(ctx, c, `UPDATE counters SET fence = $1 WHERE id = 2 AND fence <= $2`, token, token); err != nil {
		return err
	}
	return n.checkOnWrite(ctx, c, pause)
}

func (n columnCounter) update(ctx context.Context, c fence.Claim, query string, args ...any) error {
	tx, err := n.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	result, err := tx.ExecContext(ctx, n.sql(query), args...)
	if err != nil {
		return err
	}
	row := sqlfence.Row{Resource: "counters/2", Query: `SELECT fence FROM counters WHERE id = 2`}
	if err := n.dialect.CheckRow(ctx, tx, result, row, c); err != nil {
		return err
	}
	return tx.Commit()
}

// TestGate checks the three protocols with a Gate in memory.
func TestGate(t *testing.T) {
	wantLostUpdates(t, &gateCounter{gate: traffic.NewGate(t)}, shown())
}

type gateCounter struct {
	gate *fence.Gate

	mu sync.Mutex
	n  int
}

func (n *gateCounter) value(*testing.T) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.n
}

func (n *gateCounter) set(v int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.n = v
	return nil
}

func (n *gateCounter) unfenced(_ context.Context, _ fence.Claim, pause func()) error {
	v := n.value(nil)
	pause()
	return n.set(v + 1)
}

func (n *gateCounter) checkOnWrite(_ context.Context, c fence.Claim, pause func()) error {
	v := n.value(nil)
	pause()
	return n.gate.Write("counter", c, func() error { return n.set(v + 1) })
}

func (n *gateCounter) advanceFirst(ctx context.Context, c fence.Claim, pause func()) error {
	if err := n.gate.Advance("counter", c); err != nil {
		return err
	}
	return n.checkOnWrite(ctx, c, pause)
}
