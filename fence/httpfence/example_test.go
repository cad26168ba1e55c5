package httpfence_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/fence/httpfence"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A service that refuses writes of outdated holders, and a client that sends the token of its
// lease.
func Example() {
	ctx := context.Background()
	service := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "written") })
	gate, err := fence.NewGate(nil)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(httpfence.NewHandler(service, gate.Marks(), nil))
	defer server.Close()

	engine, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	client := &http.Client{Transport: &httpfence.Transport{}}
	put := func(lease *holdfast.Lease) {
		// Not the lease's own context: this holder does not know that it is over.
		ctx := context.WithoutCancel(lease.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"/seat/12A", strings.NewReader("Ada"))
		if err != nil {
			log.Fatal(err)
		}
		reply, err := client.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		defer reply.Body.Close()
		fmt.Println(reply.Status)
	}

	first, err := locks.TryAcquire(ctx, "seat/12A", nil)
	if err != nil {
		log.Fatal(err)
	}
	put(first)
	if err := first.Release(ctx); err != nil {
		log.Fatal(err)
	}
	second, err := locks.TryAcquire(ctx, "seat/12A", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Release(ctx)
	put(second)
	put(first)
	// Output:
	// 200 OK
	// 200 OK
	// 412 Precondition Failed
}
