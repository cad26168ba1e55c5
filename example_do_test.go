package holdfast_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
)

// clientOn returns a client on an engine: in a program redislock, goredislock or
// sqlitelock; here one in memory, which others in the example may share.
func clientOn(engine *memlock.Engine, label string) *holdfast.Client {
	client, err := holdfast.New(engine, &holdfast.Options{Holder: holdfast.Holder{Label: label}})
	if err != nil {
		panic(err)
	}
	return client
}

func ExampleClient_Do() {
	client, ctx := openExample(), context.Background()
	err := client.Do(ctx, "reports/nightly", nil, func(ctx context.Context, lease *holdfast.Lease) error {
		// ctx ends when the lock is lost: stop then. Hand lease.Token() on to whatever
		// can refuse a writer that has not noticed.
		fmt.Println("alone with", lease.Name())
		return ctx.Err()
	})
	switch {
	case errors.Is(err, holdfast.ErrLost):
		fmt.Println("somebody else may have worked at the same time:", err)
	case err != nil:
		fmt.Println("not done:", err)
	}
	// Output:
	// alone with reports/nightly
}

func ExampleCall() {
	client, ctx := openExample(), context.Background()
	free := map[string]bool{"12A": true}
	sell := func(seat string) (string, error) {
		return holdfast.Call(ctx, client, "seats/"+seat, nil, func(ctx context.Context, lease *holdfast.Lease) (string, error) {
			if !free[seat] {
				return "", errors.New("it is sold")
			}
			free[seat] = false
			return "ticket for " + seat, nil
		})
	}
	fmt.Println(sell("12A"))
	fmt.Println(sell("12A"))
	// Output:
	// ticket for 12A <nil>
	//  it is sold
}

func ExampleClient_TryDo() {
	engine, ctx := memlock.New(), context.Background()
	a, b := clientOn(engine, "worker a"), clientOn(engine, "worker b")
	clean := func(client *holdfast.Client, work func(context.Context, *holdfast.Lease) error) {
		err := client.TryDo(ctx, "clean-up", nil, work)
		var held *holdfast.HeldError
		switch {
		case errors.As(err, &held): // no error: it is being done
			fmt.Println("skipped, because of", held.Holder)
		case err != nil:
			fmt.Println("not done:", err)
		}
	}
	clean(a, func(context.Context, *holdfast.Lease) error {
		fmt.Println("cleaning up")
		clean(b, func(context.Context, *holdfast.Lease) error { return errors.New("two at a time") })
		return nil
	})
	// Output:
	// cleaning up
	// skipped, because of worker a
}

func ExampleTryCall() {
	client, ctx := openExample(), context.Background()
	deleted, err := holdfast.TryCall(ctx, client, "clean-up", nil, func(ctx context.Context, lease *holdfast.Lease) (int, error) {
		return 7, nil // how many files it has deleted
	})
	switch {
	case errors.Is(err, holdfast.ErrHeld):
		fmt.Println("somebody else cleans up")
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Println(deleted, "files deleted")
	}
	// Output:
	// 7 files deleted
}
