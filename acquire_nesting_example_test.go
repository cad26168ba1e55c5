package holdfast_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
)

// Nested locks: many work on the items of a collection at the same time, two
// never on the same item, and nobody while the collection itself is cleaned
// up. Workers share the outer lock and take the inner one exclusively, always
// in this order, so that nobody waits in a circle. Whoever cleans up takes the
// outer lock exclusively, for one bounded batch at a time: the queue is fair,
// so that workers who came meanwhile go on between two batches.
func Example_nested() {
	ctx := context.Background()
	client, err := holdfast.New(memlock.New(), nil) // redislock or sqlitelock outside of tests
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)

	const gone = -1
	stock := make([]int, 20) // the collection: how many there are of each item
	for item := range stock {
		stock[item] = 10
	}

	// takeOne takes one of an item, if there is any left.
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
			for item := worker + 1; item < len(stock); item++ { // item n is asked for by n workers
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
