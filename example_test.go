package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
)

func ExampleClient_Acquire() {
	ctx, engine := context.Background(), store()
	client, other := clientOn(engine, "this one"), clientOn(engine, "the other")
	busy, err := other.Acquire(ctx, "reports/nightly", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	time.AfterFunc(10*time.Millisecond, func() { busy.Release(ctx) })

	// The wait ends after half a minute, with a *HeldError, or when ctx ends.
	lease, err := client.Acquire(ctx, "reports/nightly", &holdfast.AcquireOptions{MaxWait: 30 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Release(ctx)
	// The lease is renewed in the background, and lease.Context() ends if that fails.
	fmt.Println(lease.Name(), lease.Valid(), lease.Token() > busy.Token())
	// Output:
	// reports/nightly true true
}

func ExampleClient_Acquire_inVain() {
	ctx, engine := context.Background(), store()
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
	ctx, engine := context.Background(), store()
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
		// In any order: opposite transfers never wait for each other.
		leases, err := client.AcquireAll(ctx, []string{from, to}, &holdfast.AcquireOptions{MaxWait: 5 * time.Second})
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
	small := &holdfast.AcquireOptions{Mode: holdfast.Permits(1, 5)}
	large := &holdfast.AcquireOptions{Mode: holdfast.Permits(2, 5)}
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
		fmt.Println("downloading, with permits:", lease.Mode().Permits())
	}
	// Output:
	// downloading, with permits: 2
	// downloading, with permits: 2
	// downloading, with permits: 1
	// five are taken
}

// store returns the engine that the clients of an example share.
func store() *memlock.Engine {
	engine, err := memlock.New(nil)
	if err != nil {
		panic(err)
	}
	return engine
}

// clientOn returns a client on an engine. A program would use redislock, goredislock or sqlitelock.
// Here the store is in memory, and the clients of the example share it.
func clientOn(engine *memlock.Engine, label string) *holdfast.Client {
	client, err := holdfast.New(engine, &holdfast.Options{Holder: holdfast.Holder{Label: label}, SharedEngine: true})
	if err != nil {
		panic(err)
	}
	return client
}

func ExampleClient_Do() {
	client, ctx := openExample(), context.Background()
	err := client.Do(ctx, "reports/nightly", nil, func(ctx context.Context, lease *holdfast.Lease) error {
		// ctx ends when the lock is lost: stop then. Pass lease.Token() to every store that can
		// refuse a writer that has not noticed the loss.
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
	ctx, engine := context.Background(), store()
	a, b := clientOn(engine, "worker a"), clientOn(engine, "worker b")
	clean := func(client *holdfast.Client, work func(context.Context, *holdfast.Lease) error) {
		err := client.TryDo(ctx, "clean-up", nil, work)
		var held *holdfast.HeldError
		switch {
		case errors.As(err, &held): // no error: another worker does it
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

func ExampleObserver() {
	var mu sync.Mutex // several goroutines may call an Observer
	seen := map[holdfast.EventKind]int{}
	count := func(e holdfast.Event) {
		mu.Lock()
		defer mu.Unlock()
		seen[e.Kind]++
	}
	alert := func(e holdfast.Event) {
		if e.Kind == holdfast.Lost {
			fmt.Println(e.Name, "was lost:", e.Err)
		}
	}
	engine, err := memlock.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := holdfast.New(engine, &holdfast.Options{Observer: holdfast.Observers(count, alert)})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	lease, err := client.Acquire(ctx, "reports/nightly", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := client.TryAcquire(ctx, "reports/nightly", nil); err == nil {
		fmt.Println("two at a time")
	}
	lease.Release(ctx)
	client.Close() // waits until the Observer has received all events
	fmt.Println(seen[holdfast.Acquired], seen[holdfast.Refused], seen[holdfast.Released])
	// Output:
	// 1 1 1
}

func ExampleClient_Adopt() {
	client, ctx := openExample(), context.Background()
	lease, err := client.Acquire(ctx, "deploy", &holdfast.AcquireOptions{WholeTTL: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	token := lease.Token()
	left, err := lease.Leave()
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := left.MarshalText() // send text to the other process, and keep it secret
	fmt.Println(lease.Valid(), err)

	var handle holdfast.Handle
	if err := handle.UnmarshalText(text); err != nil {
		fmt.Println(err)
		return
	}
	lease, err = client.Adopt(ctx, handle, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Release(ctx)
	fmt.Println(lease.Valid(), lease.Token() == token)
	// Output:
	// false <nil>
	// true true
}

func ExampleAcquireOptions_onWait() {
	client, ctx := openExample(), context.Background()
	busy, err := client.TryAcquire(ctx, "deploy", &holdfast.AcquireOptions{Reason: "release 1.4"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer busy.Release(ctx)
	opts := &holdfast.AcquireOptions{MaxWait: 10 * time.Millisecond, OnWait: func(s holdfast.WaitState) {
		fmt.Printf("waiting for %s: number %d, because of %q\n", s.Name, s.Place, s.Holder.Reason)
	}}
	_, err = client.Acquire(ctx, "deploy", opts)
	fmt.Println(err != nil)
	// Output:
	// waiting for deploy: number 1, because of "release 1.4"
	// true
}

// Nested locks: many workers use the items of a collection at the same time, but no two use the
// same item, and none works while the collection is cleaned up. Workers share the outer lock and
// then acquire the inner lock exclusively, always in this order, so that they cannot deadlock. The
// clean-up acquires the outer lock exclusively, for one bounded batch at a time. Because the queue
// is fair, workers that arrive meanwhile continue between two batches.
func Example_nested() {
	ctx := context.Background()
	engine, err := memlock.New(nil) // a program would use redislock or sqlitelock
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	const gone = -1
	stock := make([]int, 20) // the collection: the number of each item
	for item := range stock {
		stock[item] = 10
	}

	// takeOne removes one of an item, if any is left.
	takeOne := func(item int) error {
		shared := &holdfast.AcquireOptions{Mode: holdfast.Shared}
		return client.Do(ctx, "stock", shared, func(ctx context.Context, _ *holdfast.Lease) error {
			return client.Do(ctx, fmt.Sprintf("stock/%d", item), nil, func(context.Context, *holdfast.Lease) error {
				if stock[item] > 0 {
					stock[item]--
				}
				return nil
			})
		})
	}
	// pruneSome deletes up to three items that are sold out.
	pruneSome := func() (deleted int, err error) {
		err = client.Do(ctx, "stock", nil, func(context.Context, *holdfast.Lease) error {
			for item, n := range stock {
				if n == 0 && deleted < 3 {
					stock[item] = gone
					deleted++
				}
			}
			return nil
		})
		return deleted, err
	}

	var workers sync.WaitGroup
	for worker := range 16 {
		workers.Go(func() {
			for item := worker + 1; item < len(stock); item++ { // n workers take item n
				if err := takeOne(item); err != nil {
					fmt.Println(err)
				}
				if item%5 == 0 {
					if _, err := pruneSome(); err != nil {
						fmt.Println(err)
					}
				}
			}
		})
	}
	workers.Wait()
	for deleted := 1; deleted > 0; {
		if deleted, err = pruneSome(); err != nil {
			fmt.Println(err)
		}
	}
	for item, n := range stock {
		if n != gone {
			fmt.Print(item, ":", n, " ")
		}
	}
	// Output: 0:10 1:9 2:8 3:7 4:6 5:5 6:4 7:3 8:2 9:1
}
