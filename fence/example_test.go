package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A holder that was stopped for longer than its lease continues, and writes. The resource has
// accepted its successor, and refuses.
func Example() {
	ctx := context.Background()
	engine, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	gate, err := fence.NewGate(nil) // where the resource is
	if err != nil {
		log.Fatal(err)
	}
	sell := func(seat, guest string, lease *holdfast.Lease) error {
		return gate.Write(seat, lease, func() error {
			fmt.Println(seat, "is sold to", guest)
			return nil
		})
	}

	first, err := client.TryAcquire(ctx, "seat/12A", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := first.Release(ctx); err != nil { // or the lease was lost without notice
		log.Fatal(err)
	}
	second, err := client.TryAcquire(ctx, "seat/12A", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Release(ctx)

	if err := sell("seat/12A", "Ada", second); err != nil {
		log.Fatal(err)
	}
	err = sell("seat/12A", "Bob", first)
	fmt.Println("too late:", errors.Is(err, fence.ErrStale))
	// Output:
	// seat/12A is sold to Ada
	// too late: true
}

// A holder that computes what it writes from what it reads passes the claim to the resource before
// it reads: then no older holder can write in between.
func ExampleGate_Advance() {
	gate, err := fence.NewGate(nil)
	if err != nil {
		log.Fatal(err)
	}
	before := fence.NewClaim(33, "0123456789abcdef0123456789abcdef") // a lease is a claim
	now := fence.NewClaim(34, "fedcba9876543210fedcba9876543210")

	fmt.Println(gate.Advance("stock/7", now)) // read after this, and compute
	fmt.Println(gate.Write("stock/7", before, func() error { return nil }))
	fmt.Println(gate.Write("stock/7", now, func() error { return nil }))
	// Output:
	// <nil>
	// fence: resource "stock/7": stale fencing token 33: a holder with 34 has been here
	// <nil>
}
