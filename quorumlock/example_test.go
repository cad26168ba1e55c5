package quorumlock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock/member"
	"github.com/holdfast-locks/holdfast/quorumlock"
)

// Three independent stores, one of which is down.
func Example() {
	ctx := context.Background()
	var members []driver.Member
	for range 3 {
		members = append(members, member.New()) // outside of tests use members from package redislock/member
	}
	engine, err := quorumlock.New(members, nil)
	if err != nil {
		log.Fatal(err)
	}
	// Once, when the stores are set up: they are new, so they have forgotten no lease.
	if err := engine.Admit(ctx); err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if err := members[2].Close(); err != nil { // it is down
		log.Fatal(err)
	}
	err = client.Do(ctx, "payout", nil, func(_ context.Context, l *holdfast.Lease) error {
		fmt.Println("the others have agreed on", l.Name())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: the others have agreed on payout
}
