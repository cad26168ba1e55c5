package holdfast_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
)

func ExampleObserver() {
	var mu sync.Mutex // an Observer may be called by several goroutines
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
	client, err := holdfast.New(memlock.New(), &holdfast.Options{Observer: holdfast.Observers(count, alert)})
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
	client.Close(ctx) // waits until all is told
	fmt.Println(seen[holdfast.Acquired], seen[holdfast.Refused], seen[holdfast.Released])
	// Output:
	// 1 1 1
}
