package stores_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/stores"
)

// Only the URL changes between a test, one host and a cluster.
func Example() {
	ctx := context.Background()
	client, err := stores.Dial(ctx, "memory:", nil) // or sqlite:///var/lib/app/locks.db, redis://localhost:6379, …
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	err = client.Do(ctx, "nightly report", nil, func(context.Context, *holdfast.Lease) error {
		fmt.Println("nobody else makes the report now")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: nobody else makes the report now
}
