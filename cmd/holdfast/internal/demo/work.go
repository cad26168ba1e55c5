package demo

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// packOrder is what a shop does all day: many names, for a short time each.
func packOrder(ctx context.Context, p *process) error {
	name := fmt.Sprintf("orders/%d", 41_200+p.rand.IntN(40))
	err := p.Do(ctx, name, &holdfast.AcquireOptions{
		Reason: p.one("pack the order", "charge the card", "print the label"), Labels: map[string]string{"region": p.one("eu", "us")},
	}, p.during(400*time.Millisecond, 2500*time.Millisecond))
	_ = p.pause(ctx, 200*time.Millisecond, 1500*time.Millisecond)
	return err
}

// deploy waits for its turn to put out a release.
func deploy(name string, wait time.Duration) func(context.Context, *process) error {
	return func(ctx context.Context, p *process) error {
		err := p.Do(ctx, name, &holdfast.AcquireOptions{
			MaxWait: wait,
			Reason:  fmt.Sprintf("release 2.%d.%d", 14+p.count/3, p.count%3),
			Labels:  map[string]string{"pipeline": strconv.Itoa(48_000 + p.rand.IntN(900))},
		}, p.during(8*time.Second, 16*time.Second))
		_ = p.pause(ctx, 3*time.Second, 9*time.Second)
		return err
	}
}

// backup reads what vacuum wants for itself.
func backup(ctx context.Context, p *process) error {
	err := p.Do(ctx, "nightly/backup", &holdfast.AcquireOptions{Reason: "nightly backup"}, func(ctx context.Context, _ *holdfast.Lease) error {
		read := &holdfast.AcquireOptions{Mode: holdfast.Shared, Reason: "copy the orders"}
		if err := p.Do(ctx, "db/orders", read, p.during(6*time.Second, 10*time.Second)); err != nil {
			return err
		}
		return p.pause(ctx, 3*time.Second, 5*time.Second)
	})
	_ = p.pause(ctx, 8*time.Second, 12*time.Second)
	return err
}

func vacuum(ctx context.Context, p *process) error {
	err := p.Do(ctx, "nightly/vacuum", &holdfast.AcquireOptions{Reason: "nightly vacuum"}, func(ctx context.Context, _ *holdfast.Lease) error {
		return p.Do(ctx, "db/orders", &holdfast.AcquireOptions{Reason: "rewrite the table"}, p.during(3*time.Second, 6*time.Second))
	})
	_ = p.pause(ctx, 5*time.Second, 9*time.Second)
	return err
}

// cleanup takes several names, or none.
func cleanup(ctx context.Context, p *process) error {
	all, err := p.AcquireAll(ctx, []string{"nightly/cleanup", "files/exports", "files/uploads"}, &holdfast.AcquireOptions{Reason: "delete what is older than 90 days"})
	if err != nil {
		return err
	}
	work, end := context.WithCancel(all.Context())
	defer context.AfterFunc(ctx, end)()
	_ = p.pause(work, 4*time.Second, 8*time.Second)
	end()
	err = all.Release(context.WithoutCancel(ctx))
	_ = p.pause(ctx, 10*time.Second, 15*time.Second)
	return err
}

func readCatalog(ctx context.Context, p *process) error {
	err := p.Do(ctx, "catalog", &holdfast.AcquireOptions{Mode: holdfast.Shared, Reason: "show the catalog"}, p.during(3*time.Second, 6*time.Second))
	_ = p.pause(ctx, 500*time.Millisecond, 2*time.Second)
	return err
}

func writeCatalog(ctx context.Context, p *process) error {
	_ = p.pause(ctx, 10*time.Second, 15*time.Second)
	return p.Do(ctx, "catalog", &holdfast.AcquireOptions{Reason: "new prices"}, p.during(2*time.Second, 3*time.Second))
}

// permits takes one of those that a service or a licence allows.
func permits(name string, limit int, reason string) func(context.Context, *process) error {
	return func(ctx context.Context, p *process) error {
		err := p.Do(ctx, name, &holdfast.AcquireOptions{Mode: holdfast.Permits(1, limit), Reason: reason}, p.during(5*time.Second, 9*time.Second))
		_ = p.pause(ctx, 200*time.Millisecond, time.Second)
		return err
	}
}
