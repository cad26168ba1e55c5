package stores_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/stores"
)

// The URL is all that changes between a test, one host and a cluster.
func Example() {
	ctx := context.Background()
	engine, err := stores.Open(ctx, "memory:") // or sqlite:///var/lib/app/locks.db, redis://localhost:6379, …
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	client, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	err = client.Do(ctx, "nightly report", nil, func(context.Context, *holdfast.Lease) error {
		fmt.Println("nobody else makes the report now")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: nobody else makes the report now
}

// A program that shows its store shows nobody's password.
func ExamplePublic() {
	fmt.Println(stores.Public("rediss://app:secret@redis.internal:6379/2?prefix=app:"))
	// Output: rediss://redis.internal:6379/2?prefix=app:
}
