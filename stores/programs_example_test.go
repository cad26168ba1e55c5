package stores_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/sqlfence"
	"github.com/holdfast-locks/holdfast/stores"
	_ "modernc.org/sqlite"
)

// dial returns a client for the examples.
func dial() *holdfast.Client {
	client, err := stores.Dial(context.Background(), "memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// Work under a lock returns a value.
func ExampleDial_value() {
	client, ctx := dial(), context.Background()
	defer client.Close()
	sum, err := holdfast.Call(ctx, client, "accounts", nil, func(ctx context.Context, l *holdfast.Lease) (int, error) {
		return 40 + 2, ctx.Err()
	})
	fmt.Println(sum, err)
	// Output: 42 <nil>
}

// Work that another process does is skipped.
func ExampleDial_skip() {
	client, ctx := dial(), context.Background()
	defer client.Close()
	lease, err := client.Acquire(ctx, "index", nil) // as another process would
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)
	err = client.TryDo(ctx, "index", nil, func(ctx context.Context, l *holdfast.Lease) error {
		fmt.Println("not reached")
		return nil
	})
	var held *holdfast.HeldError
	fmt.Println(errors.As(err, &held), errors.Is(err, holdfast.ErrHeld))
	// Output: true true
}

// Work that was done does not run again: the second call returns its result.
func ExampleDial_once() {
	client, ctx := dial(), context.Background()
	defer client.Close()
	charge := func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
		fmt.Println("charging")
		return []byte("receipt 7"), nil
	}
	for range 2 {
		result, err := client.Once(ctx, "order 42", nil, charge)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s, replayed: %t\n", result.Value, result.Replayed)
	}
	// Output:
	// charging
	// receipt 7, replayed: false
	// receipt 7, replayed: true
}

// However many replicas call Every, the work runs once for each time of the schedule.
func ExampleDial_schedule() {
	client := dial()
	defer client.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	everySecond := holdfast.Periodic(time.Unix(0, 0), time.Second)
	err := client.Every(ctx, "prices", everySecond, nil, func(ctx context.Context, run holdfast.EveryRun) error {
		fmt.Println("attempt", run.Attempt, "of", run.Name)
		stop() // a service continues until it ends
		return nil
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// attempt 1 of prices
	// true
}

// A database refuses the write of a former holder once the next holder has written.
func ExampleDial_guard() {
	client, ctx := dial(), context.Background()
	defer client.Close()
	db, err := sql.Open("sqlite", "file:guard?mode=memory&cache=shared")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // needed for a database in memory
	if err := sqlfence.SQLite.Migrate(ctx, db); err != nil {
		log.Fatal(err)
	}
	sell := func(lease *holdfast.Lease, guest string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := sqlfence.SQLite.Advance(ctx, tx, "seat/12A", lease); err != nil {
			return err
		}
		fmt.Println("sold to", guest) // by statements of tx
		return tx.Commit()
	}
	slow, err := client.Acquire(ctx, "seat/12A", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := slow.Release(ctx); err != nil { // or the lease was lost
		log.Fatal(err)
	}
	err = client.Do(ctx, "seat/12A", nil, func(ctx context.Context, next *holdfast.Lease) error {
		return sell(next, "Ada")
	})
	fmt.Println(err)
	fmt.Println(errors.Is(sell(slow, "Bob"), fence.ErrStale))
	// Output:
	// sold to Ada
	// <nil>
	// true
}
