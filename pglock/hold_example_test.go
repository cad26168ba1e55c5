package pglock_test

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/pglock"
)

// A seat is sold in a transaction that holds the lock: even if this process is paused for longer
// than its lease lasts, no other seller gets the lock before the transaction ends.
func ExampleEngine_Hold() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@localhost/theatre")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	engine, err := pglock.New(pool, nil)
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	err = client.Do(ctx, "seat/12A", nil, func(ctx context.Context, lease *holdfast.Lease) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(context.WithoutCancel(ctx))
		if err := engine.Hold(ctx, tx, lease); err != nil {
			return err // errors.Is(err, holdfast.ErrLost): another seller may have been here
		}
		if _, err := tx.Exec(ctx, `UPDATE seats SET guest = 'Ada' WHERE id = '12A' AND guest = ''`); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
	if err != nil {
		log.Print(err)
	}
}
