package goredislock_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/goredislock"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore/redisfence"
)

// A program that has a go-redis client already. The client stays open when the engine is closed.
func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	if err := nightly(context.Background(), client); err != nil {
		log.Fatal(err)
	}
}

// nightly is work that one process at a time does, on any number of hosts.
func nightly(ctx context.Context, client redis.UniversalClient) error {
	engine, err := goredislock.New(client, &goredislock.Options{Prefix: "locks:"})
	if err != nil {
		return err
	}
	locks, err := holdfast.New(engine, nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	return locks.Do(ctx, "reports/nightly", nil, func(ctx context.Context, l *holdfast.Lease) error {
		fmt.Println("until ctx ends nobody else works on", l.Name())
		return client.Incr(ctx, "reports").Err()
	})
}

// New accepts clients of sentinels and of a Redis Cluster, too.
func ExampleNew_sentinels() {
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "locks", SentinelAddrs: []string{"localhost:26379", "localhost:26380", "localhost:26381"},
	})
	defer client.Close()
	if err := nightly(context.Background(), client); err != nil {
		log.Fatal(err)
	}
}

// A write that is refused for a stale holder: the server compares the tokens.
func ExampleEngine_guard() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	if err := publish(context.Background(), client); err != nil {
		log.Fatal(err)
	}
}

func publish(ctx context.Context, client redis.UniversalClient) error {
	engine, err := goredislock.New(client, nil)
	if err != nil {
		return err
	}
	guard, err := redisfence.New(engine, nil)
	if err != nil {
		return err
	}
	locks, err := holdfast.New(engine, nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	return locks.Do(ctx, "price", nil, func(ctx context.Context, l *holdfast.Lease) error {
		return guard.Set(ctx, "price/current", l, "9.99", 0)
	})
}

// TestExamples runs the functions of the examples.
func TestExamples(t *testing.T) {
	server := testsvc.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer func() { _ = client.Close() }()
	if err := nightly(t.Context(), client); err != nil {
		t.Error(err)
	}
	if err := publish(t.Context(), client); err != nil {
		t.Error(err)
	}
	if n, price := client.Get(t.Context(), "reports").Val(), client.Get(t.Context(), "price/current").Val(); n != "1" || price != "9.99" {
		t.Errorf("reports %q, price %q", n, price)
	}
}
