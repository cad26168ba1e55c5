package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// Each replica of a service calls Every when it starts. Here two do, and the schedule is
// short, for the sake of the example.
func ExampleEvery() {
	client, ctx := openExample(), context.Background()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	schedule := holdfast.Periodic(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Second)

	done := make(chan error)
	for range 2 {
		go func() {
			done <- holdfast.Every(ctx, client, "reports", schedule, nil, func(ctx context.Context, run holdfast.EveryRun) error {
				// Work for run.Scheduled, and show run.Lease.Token() to what it changes.
				fmt.Println("attempt", run.Attempt, "on time:", time.Since(run.Scheduled) < time.Minute)
				stop()
				return nil
			})
		}()
	}
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			fmt.Println(err)
		}
	}

	s, err := client.EveryStatus(context.Background(), "reports")
	fmt.Println(s.Done, s.Missed, s.Next.Sub(s.Last.Scheduled), err)
	// Output:
	// attempt 1 on time: true
	// 1 0 1s <nil>
}
