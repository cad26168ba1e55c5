package holdfast_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
)

func ExampleLead() {
	client, ctx := openExample(), context.Background()
	ctx, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	err := holdfast.Lead(ctx, client, "scheduler", nil, func(ctx context.Context, l *holdfast.Lease) error {
		fmt.Println("leading", l.Name())
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				// One step, which shows l.Token() to whatever it changes.
			case <-ctx.Done():
				return context.Cause(ctx) // we are to stop, or have lost the lead
			}
		}
	})
	fmt.Println(err)
	// Output:
	// leading scheduler
	// context deadline exceeded
}
