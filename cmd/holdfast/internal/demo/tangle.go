package demo

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// move holds one place, and waits for the next: several of these in a row wait for the
// last one.
func move(from, to string) func(context.Context, *process) error {
	return func(ctx context.Context, p *process) error {
		err := p.Do(ctx, from, &holdfast.AcquireOptions{Reason: "move goods"}, func(ctx context.Context, _ *holdfast.Lease) error {
			if err := p.pause(ctx, time.Second, 2*time.Second); err != nil {
				return err
			}
			return p.Do(ctx, to, &holdfast.AcquireOptions{Reason: "goods from " + from}, p.during(time.Second, 2*time.Second))
		})
		_ = p.pause(ctx, time.Second, 2*time.Second)
		return err
	}
}

// inventory is whom all of them wait for.
func inventory(ctx context.Context, p *process) error {
	err := p.Do(ctx, "stock/munich", &holdfast.AcquireOptions{Reason: "inventory: nothing may move"}, p.during(20*time.Second, 30*time.Second))
	_ = p.pause(ctx, 3*time.Second, 5*time.Second)
	return err
}

// transfer takes two accounts in an order that is not everybody's, so that two of them wait
// for each other until one has waited long enough.
func transfer(from, to string, wait time.Duration) func(context.Context, *process) error {
	return func(ctx context.Context, p *process) error {
		err := p.Do(ctx, from, &holdfast.AcquireOptions{Reason: "transfer out"}, func(ctx context.Context, _ *holdfast.Lease) error {
			if err := p.pause(ctx, 2*time.Second, 3*time.Second); err != nil {
				return err
			}
			return p.Do(ctx, to, &holdfast.AcquireOptions{MaxWait: wait, Reason: "transfer in"}, p.during(time.Second, 2*time.Second))
		})
		_ = p.pause(ctx, time.Second, 3*time.Second)
		return err
	}
}
