package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/rediscore/redisfence"
	"github.com/holdfast-locks/holdfast/redislock"
)

// Work that one process at a time does, on any number of hosts.
func Example() {
	ctx := context.Background()
	engine, err := redislock.Open(ctx, "redis://localhost:6379")
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	err = client.Do(ctx, "reports/nightly", nil, func(ctx context.Context, l *holdfast.Lease) error {
		fmt.Println("until ctx ends nobody else works on", l.Name())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}

// A program that has a rueidis client already. The client stays open when the engine is closed.
func ExampleNew() {
	ctx := context.Background()
	conn, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:  []string{"localhost:6379"},
		DisableRetry: true, AlwaysPipelining: true, PipelineMultiplex: -1, // see New
	})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	engine, err := redislock.New(conn, &redislock.Options{Prefix: "locks:"})
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	err = client.TryDo(ctx, "cache/rebuild", nil, func(context.Context, *holdfast.Lease) error {
		fmt.Println("rebuilding")
		return nil
	})
	var held *holdfast.HeldError
	if errors.As(err, &held) {
		fmt.Println("skipped:", held)
	} else if err != nil {
		log.Fatal(err)
	}
}

// A key that only the latest holder of the lock can change, even if an earlier one continues after
// its lease has ended.
func ExampleEngine_guard() {
	ctx := context.Background()
	engine, err := redislock.Open(ctx, "redis://localhost:6379")
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	guard, err := redisfence.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}

	err = client.Do(ctx, "rates", nil, func(ctx context.Context, l *holdfast.Lease) error {
		return guard.Set(ctx, "rates/EUR", l, "1.08", 0)
	})
	if errors.Is(err, fence.ErrStale) {
		fmt.Println("a later holder has written")
	} else if err != nil {
		log.Fatal(err)
	}
}
