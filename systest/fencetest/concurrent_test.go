package fencetest

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/sqlfence"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// repeatable reports whether the database rolled a transaction back because of a deadlock or a
// serialization failure.
func repeatable(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	switch {
	case errors.As(err, &pg):
		return pg.Code == "40001" || pg.Code == "40P01"
	case errors.As(err, &my):
		return my.Number == 1213 || my.Number == 1020
	}
	return false
}

// transaction runs work in a transaction and repeats it while the database rolls it back. It
// returns the number of repeats.
func transaction(ctx context.Context, db *sql.DB, level sql.IsolationLevel, work func(*sql.Tx) error) (repeats int, err error) {
	for ; ; repeats++ {
		err = func() error {
			tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := work(tx); err != nil {
				return err
			}
			return tx.Commit()
		}()
		if !repeatable(err) {
			return repeats, err
		}
	}
}

// levels are the isolation levels that a store has.
func (s *store) levels() []sql.IsolationLevel {
	if s.dialect == sqlfence.SQLite {
		return []sql.IsolationLevel{sql.LevelDefault}
	}
	return []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
}

// An entry is a claim that was accepted, in a transaction that committed.
type entry struct {
	token uint64
	id    string
}

var errRollback = errors.New("the test rolls back")

// testSequence runs transactions on one resource, 64 at a time, with random tokens. Equal tokens of
// different leases are frequent. Each accepted transaction writes its claim into a journal. The
// lock on the mark makes the order of the journal the order of the commits.
func testSequence(t *testing.T, s *store) {
	serial := map[sqlfence.Dialect]string{sqlfence.PostgreSQL: "bigserial PRIMARY KEY", sqlfence.MySQL: "bigint AUTO_INCREMENT PRIMARY KEY", sqlfence.SQLite: "integer PRIMARY KEY AUTOINCREMENT"}[s.dialect]
	for _, level := range s.levels() {
		t.Run(level.String(), func(t *testing.T) {
			s.exec(t, `CREATE TABLE journal (seq `+serial+`, token bigint NOT NULL, lease_id char(32) NOT NULL)`)
			defer s.exec(t, `DROP TABLE journal`)
			resource := "sequence/" + level.String()
			refused, repeats := s.rush(t, resource, level)

			journal := s.journal(t)
			var last entry
			for i, e := range journal {
				if e.token < last.token || (e.token == last.token && e.id != last.id) {
					t.Errorf("accepted claim %d is %d of %.4q after %d of %.4q", i, e.token, e.id, last.token, last.id)
				}
				last = e
			}
			if token, id := s.mark(t, resource); token != last.token || id != last.id {
				t.Errorf("the mark is %d of %.4q, want the last of the journal, %d of %.4q", token, id, last.token, last.id)
			}
			if len(journal) < 10 || refused < 10 {
				t.Errorf("%d accepted and %d refused: too few of one to show anything", len(journal), refused)
			}
			t.Logf("%d accepted, %d refused, %d repeated", len(journal), refused, repeats)
		})
	}
}

// rush runs the transactions of testSequence.
func (s *store) rush(t *testing.T, resource string, level sql.IsolationLevel) (refused, repeats int) {
	const rounds = 12
	var begun atomic.Int64 // raises the range of tokens over time
	ids := [3]lockinfo.LeaseID{lockinfo.NewLeaseID(), lockinfo.NewLeaseID(), lockinfo.NewLeaseID()}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				token, id := uint64(begun.Add(1)/8+1)+rand.Uint64N(12), ids[rand.IntN(len(ids))]
				again, err := transaction(t.Context(), s.db, level, func(tx *sql.Tx) error {
					if err := s.dialect.Advance(t.Context(), tx, resource, fence.NewClaim(token, id)); err != nil {
						return err
					}
					if rand.IntN(8) == 0 {
						return errRollback
					}
					_, err := tx.ExecContext(t.Context(), s.sql(`INSERT INTO journal (token, lease_id) VALUES ($1, $2)`), int64(token), string(id))
					return err
				})
				var stale *fence.StaleError
				isStale := errors.As(err, &stale)
				if isStale && (stale.Current < token || stale.Token != token || stale.Resource != resource) {
					t.Errorf("%d was refused without a reason: %v", token, err)
				}
				if err != nil && !isStale && err != errRollback {
					t.Errorf("%d of %.4q: %v", token, id, err)
				}
				mu.Lock()
				repeats += again
				if isStale {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return refused, repeats
}

func (s *store) journal(t *testing.T) []entry {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), `SELECT token, lease_id FROM journal ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var journal []entry
	for rows.Next() {
		var e entry
		if err := rows.Scan(&e.token, &e.id); err != nil {
			t.Fatal(err)
		}
		journal = append(journal, e)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return journal
}

// testEqualTokens lets 64 leases with the same token advance a new resource at once: exactly one of
// them is accepted. Then that lease repeats its claim 64 times at once.
func testEqualTokens(t *testing.T, s *store) {
	rush := func(claim func() fence.Claim) (winners []fence.Claim) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				c := claim()
				_, err := transaction(t.Context(), s.db, sql.LevelDefault, func(tx *sql.Tx) error {
					return s.dialect.Advance(t.Context(), tx, "equal", c)
				})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
				if err == nil {
					mu.Lock()
					winners = append(winners, c)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return winners
	}
	winners := rush(func() fence.Claim { return fence.NewClaim(40, lockinfo.NewLeaseID()) })
	if len(winners) != 1 {
		t.Fatalf("%d of %d leases with equal tokens passed, want 1", len(winners), workers)
	}
	if again := rush(func() fence.Claim { return winners[0] }); len(again) != workers {
		t.Errorf("the same lease passed %d times of %d", len(again), workers)
	}
}

// testRollback checks that a transaction that is rolled back leaves the mark as it was.
func testRollback(t *testing.T, s *store) {
	id := lockinfo.NewLeaseID()
	if err := s.advance(t.Context(), s.db, "rollback", fence.NewClaim(5, id)); err != nil {
		t.Fatal(err)
	}
	_, err := transaction(t.Context(), s.db, sql.LevelDefault, func(tx *sql.Tx) error {
		if err := s.dialect.Advance(t.Context(), tx, "rollback", fence.NewClaim(9, id)); err != nil {
			t.Error(err)
		}
		return errRollback
	})
	if err != errRollback {
		t.Fatal(err)
	}
	if token, _ := s.mark(t, "rollback"); token != 5 {
		t.Errorf("the mark is %d, want 5 as before the transaction", token)
	}
}

// testRestart checks that a mark survives a crash of the server, or the end of the process that had
// the file open.
func testRestart(t *testing.T, s *store) {
	a, b := lockinfo.NewLeaseID(), lockinfo.NewLeaseID()
	if err := s.advance(t.Context(), s.db, "restart", fence.NewClaim(34, a)); err != nil {
		t.Fatal(err)
	}
	s.db.Close()
	if s.restart != nil {
		s.restart()
	}
	s.db = s.open(t, "")
	if err := s.dialect.Migrate(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
	wantStale(t, s.advance(t.Context(), s.db, "restart", fence.NewClaim(33, a)), fence.StaleError{Resource: "restart", Token: 33, Current: 34})
	wantStale(t, s.advance(t.Context(), s.db, "restart", fence.NewClaim(34, b)), fence.StaleError{Resource: "restart", Token: 34, Current: 34})
	if err := s.advance(t.Context(), s.db, "restart", fence.NewClaim(34, a)); err != nil {
		t.Errorf("the holder itself, after a restart: %v", err)
	}
}
