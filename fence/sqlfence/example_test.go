package sqlfence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/sqlfence"
	"github.com/holdfast-locks/holdfast/memlock"
)

// sell sells a seat in a transaction that begins with Advance: from then on no older holder can
// write, and a newer one waits until the transaction ends.
func sell(ctx context.Context, db *sql.DB, seat, guest string, lease *holdfast.Lease) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := sqlfence.PostgreSQL.Advance(ctx, tx, seat, lease); err != nil {
		return err
	}
	var taken bool
	if err := tx.QueryRowContext(ctx, `SELECT guest <> '' FROM seats WHERE id = $1`, seat).Scan(&taken); err != nil {
		return err
	}
	if taken {
		return fmt.Errorf("%s is sold already", seat)
	}
	if _, err := tx.ExecContext(ctx, `UPDATE seats SET guest = $1 WHERE id = $2`, guest, seat); err != nil {
		return err
	}
	return tx.Commit()
}

// It needs a database, and a driver for it, such as github.com/jackc/pgx/v5/stdlib.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", "postgres://localhost/theatre")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := sqlfence.PostgreSQL.Migrate(ctx, db); err != nil { // the table of the marks
		log.Fatal(err)
	}
	engine, err := memlock.New(nil) // redislock outside of tests
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	err = client.Do(ctx, "seat/12A", nil, func(ctx context.Context, l *holdfast.Lease) error {
		return sell(ctx, db, "seat/12A", "Ada", l)
	})
	if errors.Is(err, fence.ErrStale) {
		log.Print("somebody newer has the seat: undo what else was done")
	}
}
