package holdfast_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// moveArm moves the arm of a robot in steps of two seconds each. The lease is not renewed in the
// background: if this process dies, or a step hangs, the arm is free when the time of that step
// ends.
func moveArm(ctx context.Context, client *holdfast.Client, steps []func(context.Context) error) error {
	const step, spare = 2 * time.Second, time.Second // spare is for a late first step
	opts := &holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff, TTL: step + spare, WholeTTL: true}
	return client.Do(ctx, "robot/arm", opts, func(ctx context.Context, lease *holdfast.Lease) error {
		for i, move := range steps {
			if i > 0 {
				if err := lease.ExtendBy(ctx, step); err != nil {
					return err // such as ErrLost: do not move
				}
			}
			if err := move(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func ExampleLease_ExtendBy() {
	var steps []func(context.Context) error
	for i := range 5 {
		steps = append(steps, func(context.Context) error {
			fmt.Println("step", i+1)
			return nil
		})
	}
	if err := moveArm(context.Background(), openExample(), steps); err != nil {
		fmt.Println(err)
	}
	// Output:
	// step 1
	// step 2
	// step 3
	// step 4
	// step 5
}
