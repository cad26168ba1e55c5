package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
)

func ExampleClient_Acquire() {
	engine, ctx := memlock.New(), context.Background()
	client, other := clientOn(engine, "this one"), clientOn(engine, "the other")
	busy, err := other.Acquire(ctx, "reports/nightly", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	time.AfterFunc(10*time.Millisecond, func() { busy.Release(ctx) })

	// The wait ends after half a minute, with a *HeldError, and when ctx does.
	lease, err := client.Acquire(ctx, "reports/nightly", &holdfast.AcquireOptions{Wait: 30 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Release(ctx)
	// It is renewed in the background, and lease.Context() ends if that fails.
	fmt.Println(lease.Name(), lease.Valid(), lease.Token() > busy.Token())
	// Output:
	// reports/nightly true true
}

func ExampleClient_Acquire_inVain() {
	engine, ctx := memlock.New(), context.Background()
	client, other := clientOn(engine, "this one"), clientOn(engine, "the other")
	busy, err := other.Acquire(ctx, "reports/nightly", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer busy.Release(ctx)

	ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = client.Acquire(ctx, "reports/nightly", nil)
	var held *holdfast.HeldError
	if errors.Is(err, context.DeadlineExceeded) && errors.As(err, &held) {
		fmt.Println("no longer waited for:", held.Holder)
	}
	// Output:
	// no longer waited for: the other
}

func ExampleClient_TryAcquire() {
	engine, ctx := memlock.New(), context.Background()
	migrate := func(client *holdfast.Client) {
		lease, err := client.TryAcquire(ctx, "migration", nil)
		var held *holdfast.HeldError
		switch {
		case errors.As(err, &held):
			fmt.Println("left to", held.Holder)
			return
		case err != nil:
			fmt.Println(err)
			return
		}
		defer lease.Release(ctx)
		fmt.Println("migrating, until", lease.Name(), "is lost or released")
	}
	migrate(clientOn(engine, "replica 1"))

	if _, err := clientOn(engine, "replica 2").TryAcquire(ctx, "migration", nil); err != nil {
		fmt.Println(err)
	}
	migrate(clientOn(engine, "replica 3"))
	// Output:
	// migrating, until migration is lost or released
	// left to replica 2
}

func ExampleClient_AcquireAll() {
	client, ctx := openExample(), context.Background()
	balance := map[string]int{"account/7": 100, "account/9": 0}
	transfer := func(from, to string, amount int) error {
		// In whatever order: two transfers the other way round cannot wait for each other.
		leases, err := client.AcquireAll(ctx, []string{from, to}, &holdfast.AcquireOptions{Wait: 5 * time.Second})
		if err != nil {
			return err
		}
		defer leases.Release(ctx)
		balance[from] -= amount // with leases.Token(from)
		balance[to] += amount   // with leases.Token(to)
		return context.Cause(leases.Context())
	}
	fmt.Println(transfer("account/7", "account/9", 30), transfer("account/9", "account/7", 10))
	fmt.Println(balance)
	// Output:
	// <nil> <nil>
	// map[account/7:80 account/9:20]
}

func ExampleAcquireOptions_semaphore() {
	client, ctx := openExample(), context.Background()
	// At most five downloads at a time, on all hosts together; a large one counts for two.
	small := &holdfast.AcquireOptions{Mode: holdfast.Semaphore, Limit: 5}
	large := &holdfast.AcquireOptions{Mode: holdfast.Semaphore, Limit: 5, Permits: 2}
	for _, opts := range []*holdfast.AcquireOptions{large, large, small, small} {
		lease, err := client.TryAcquire(ctx, "downloads", opts)
		if errors.Is(err, holdfast.ErrHeld) {
			fmt.Println("five are taken")
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		defer lease.Release(ctx)
		fmt.Println("downloading, with permits:", lease.Permits())
	}
	// Output:
	// downloading, with permits: 2
	// downloading, with permits: 2
	// downloading, with permits: 1
	// five are taken
}
