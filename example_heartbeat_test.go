package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// loadAll loads files one after the other. The lease of a worker that hangs in a file is renewed
// for another minute, and then lost. After an hour it is lost even with heartbeats.
func loadAll(ctx context.Context, client *holdfast.Client, files []string, load func(ctx context.Context, file string) error) error {
	opts := &holdfast.AcquireOptions{StallAfter: time.Minute, MaxHold: time.Hour}
	err := client.Do(ctx, "import", opts, func(ctx context.Context, lease *holdfast.Lease) error {
		for _, file := range files {
			if err := load(ctx, file); err != nil {
				return err
			}
			lease.Heartbeat() // sends no request
		}
		return nil
	})
	switch {
	case errors.Is(err, holdfast.ErrStalled):
		return fmt.Errorf("one file took too long: %w", err)
	case errors.Is(err, holdfast.ErrMaxHold):
		return fmt.Errorf("all of it took too long: %w", err)
	}
	return err
}

func ExampleLease_Heartbeat() {
	err := loadAll(context.Background(), openExample(), []string{"a.csv", "b.csv"}, func(ctx context.Context, file string) error {
		fmt.Println("loading", file)
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// loading a.csv
	// loading b.csv
	// <nil>
}
