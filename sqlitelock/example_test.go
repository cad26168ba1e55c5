package sqlitelock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/sqlitelock"
)

// Two clients of one host share a file. Here both are in one process; another process would open
// the same path.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "locks") // /var/lib/billing outside of tests
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	open := func() (*holdfast.Client, func()) {
		engine, err := sqlitelock.Open(ctx, filepath.Join(dir, "locks.db"), nil)
		if err != nil {
			log.Fatal(err)
		}
		client, err := holdfast.New(engine, nil)
		if err != nil {
			log.Fatal(err)
		}
		return client, func() {
			if err := errors.Join(client.Close(), engine.Close()); err != nil {
				log.Print(err)
			}
		}
	}
	mine, closeMine := open()
	defer closeMine()
	theirs, closeTheirs := open()
	defer closeTheirs()

	lease, err := mine.Acquire(ctx, "invoices", &holdfast.AcquireOptions{Reason: "the run of May"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = theirs.TryAcquire(ctx, "invoices", nil)
	var held *holdfast.HeldError
	if errors.As(err, &held) {
		fmt.Println("somebody has it for:", held.Holder.Reason)
	}
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
	err = theirs.Do(ctx, "invoices", nil, func(context.Context, *holdfast.Lease) error {
		fmt.Println("now it is their turn")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// somebody has it for: the run of May
	// now it is their turn
}
