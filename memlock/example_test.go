package memlock_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A mutex for each account, in one process: there can be any number of names, unused names cost
// nothing, and a waiter can stop waiting.
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

	balance := [3]int{}
	deposit := func(account int) error {
		name := fmt.Sprintf("account/%d", account)
		return client.Do(ctx, name, nil, func(context.Context, *holdfast.Lease) error {
			balance[account] += 10
			return nil
		})
	}
	var deposits sync.WaitGroup
	for i := range 30 {
		deposits.Go(func() {
			if err := deposit(i % len(balance)); err != nil {
				log.Print(err)
			}
		})
	}
	deposits.Wait()
	fmt.Println(balance)
	// Output: [100 100 100]
}
