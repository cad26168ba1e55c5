package holdfast_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
)

func ExampleClient_Adopt() {
	client, ctx := openExample(), context.Background()
	lease, err := client.Acquire(ctx, "deploy", &holdfast.AcquireOptions{WholeTTL: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	leaseID, token := lease.ID(), lease.Token()
	err = lease.Leave() // its ID and its token go to the other process
	fmt.Println(lease.Valid(), err)

	lease, err = client.Adopt(ctx, "deploy", leaseID, &holdfast.AdoptOptions{Token: token})
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
	opts := &holdfast.AcquireOptions{Wait: 10 * time.Millisecond, OnWait: func(s holdfast.WaitState) {
		fmt.Printf("waiting for %s: number %d, because of %q\n", s.Name, s.Place, s.Holder.Reason)
	}}
	_, err = client.Acquire(ctx, "deploy", opts)
	fmt.Println(err != nil)
	// Output:
	// waiting for deploy: number 1, because of "release 1.4"
	// true
}
