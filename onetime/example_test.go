package onetime_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/onetime"
)

func Example() {
	ctx := context.Background()
	engine, err := memlock.New(nil) // redislock or sqlitelock outside of tests
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	logins, err := onetime.New(client, &onetime.Options{Name: "logins"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer logins.Close(ctx)

	secret, err := logins.Issue(ctx, []byte("user 42"), 15*time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the link ends with", len(secret), "characters")

	// The page behind the link only calls Peek, because mail scanners follow links.
	preview, err := logins.Peek(ctx, secret)
	fmt.Printf("log in as %s? %v\n", preview.Payload, err)

	// The button on the page redeems the token.
	payload, err := logins.Redeem(ctx, secret)
	fmt.Printf("welcome, %s %v\n", payload, err)
	_, err = logins.Redeem(ctx, secret)
	fmt.Println("again:", errors.Is(err, onetime.ErrRedeemed))

	// Output:
	// the link ends with 54 characters
	// log in as user 42? <nil>
	// welcome, user 42 <nil>
	// again: true
}

// A client that has lost a reply repeats its request with the same request ID.
func ExampleService_RedeemWith() {
	ctx := context.Background()
	engine, err := memlock.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	tickets, err := onetime.New(client, &onetime.Options{Name: "downloads"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tickets.Close(ctx)
	secret, err := tickets.Issue(ctx, []byte("report.pdf"), time.Hour)
	if err != nil {
		fmt.Println(err)
		return
	}

	opts := &onetime.RedeemOptions{RequestID: rand.Text()}
	for range 2 {
		payload, err := tickets.RedeemWith(ctx, secret, opts)
		fmt.Printf("%s %v\n", payload, err)
	}
	_, err = tickets.RedeemWith(ctx, secret, &onetime.RedeemOptions{RequestID: rand.Text()})
	fmt.Println("somebody else:", errors.Is(err, onetime.ErrRedeemed))

	// Output:
	// report.pdf <nil>
	// report.pdf <nil>
	// somebody else: true
}
