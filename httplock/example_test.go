package httplock_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A program acquires a lock at a server, and knows nothing of the store behind it.
func Example() {
	ctx := context.Background()
	store, err := memlock.New(nil) // holdfast serve does this for any store
	if err != nil {
		log.Fatal(err)
	}
	handler, err := server.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	host := httptest.NewServer(handler)
	defer host.Close()

	engine, err := httplock.Open(ctx, host.URL, nil) // or "https://:TOKEN@locks-1:7420,locks-2:7420"
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
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
