package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
)

// openExample returns a client for the examples, on its own store.
func openExample() *holdfast.Client {
	engine, err := memlock.New(nil)
	if err != nil {
		panic(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		panic(err)
	}
	return client
}

// send is the work that an example does once.
func send(_ context.Context, address string) ([]byte, error) {
	fmt.Println("sending to", address)
	return []byte("message 7"), nil
}

func ExampleClient_Once() {
	client, ctx := openExample(), context.Background()
	for range 2 {
		result, err := client.Once(ctx, "email/order-42", nil, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
			return send(ctx, "ada@example.com")
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s, replayed: %t\n", result.Value, result.Replayed)
	}
	// Output:
	// sending to ada@example.com
	// message 7, replayed: false
	// message 7, replayed: true
}

func ExampleClient_OnceBegin() {
	client, ctx := openExample(), context.Background()
	twice := func() error {
		run, err := client.OnceBegin(ctx, "email/order-42", nil)
		if err != nil {
			return err
		}
		defer run.Fail(ctx) // after Complete, and of a run that is Replayed, it does nothing
		if run.Replayed() {
			fmt.Printf("done before: %s\n", run.Result().Value)
			return nil
		}
		err = run.Complete(ctx, []byte("message 7"))
		fmt.Println("done now")
		return err
	}
	fmt.Println(twice(), twice())
	// Output:
	// done now
	// done before: message 7
	// <nil> <nil>
}

func ExampleClient_OnceAdopt() {
	client, ctx := openExample(), context.Background()
	begun, err := client.OnceBegin(ctx, "email/order-42", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	handle, err := begun.Leave()
	if err != nil {
		fmt.Println(err)
		return
	}
	// In another process:
	run, err := client.OnceAdopt(ctx, handle, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Complete(ctx, []byte("message 7")))
	// Output: <nil>
}

func ExampleClient_Once_errors() {
	client, ctx := openExample(), context.Background()
	busy, err := client.TryAcquire(ctx, "email/order-42", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer busy.Release(ctx)
	_, err = client.Once(ctx, "email/order-42", nil, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
		return send(ctx, "ada@example.com")
	})
	var inProgress *holdfast.InProgressError
	switch {
	case errors.As(err, &inProgress):
		fmt.Println("somebody else sends it: come back later")
	case errors.Is(err, holdfast.ErrLost), errors.Is(err, holdfast.ErrOutcomeUnknown):
		fmt.Println("it was sent, but may be sent again")
	case err != nil:
		fmt.Println("it was not sent:", err)
	}
	// Output:
	// somebody else sends it: come back later
}

func ExampleClient_Once_fingerprint() {
	client, ctx := openExample(), context.Background()
	charge := func(key, request string) error {
		_, err := client.Once(ctx, key, &holdfast.OnceOptions{
			Fingerprint: request,
			Await:       10 * time.Second,
		}, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
			return []byte("charged"), nil
		})
		return err
	}
	fmt.Println(charge("charge/9f2c", "7 EUR"))
	fmt.Println(charge("charge/9f2c", "700 EUR"))
	// Output:
	// <nil>
	// holdfast: once "charge/9f2c": the key was used for another request
}

func ExampleOnceJSON() {
	client, ctx := openExample(), context.Background()
	type receipt struct {
		Number int    `json:"number"`
		Amount string `json:"amount"`
	}
	for range 2 {
		r, result, err := holdfast.OnceJSON(ctx, client, "charge/order-42", nil, func(ctx context.Context, l *holdfast.Lease) (receipt, error) {
			return receipt{Number: 7, Amount: "12 EUR"}, nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Number, r.Amount, result.Replayed)
	}
	// Output:
	// 7 12 EUR false
	// 7 12 EUR true
}

func ExampleOnceOptions_scheduled() {
	client, ctx := openExample(), context.Background()
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC) // every day at 03:00
	report := func(now time.Time) error {
		scheduled := holdfast.ScheduledTime(now, start, 24*time.Hour)
		opts := &holdfast.OnceOptions{Scheduled: scheduled, Retention: 48 * time.Hour}
		_, err := client.Once(ctx, "reports/nightly", opts, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
			fmt.Println("working for", l.Name())
			return nil, nil
		})
		return err
	}
	// Three replicas with inaccurate clocks.
	for _, off := range []time.Duration{0, 90 * time.Second, -2 * time.Minute} {
		if err := report(time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC).Add(off)); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// working for reports/nightly@2026-11-21T03:00Z
}

func ExampleRecords_Once() {
	client, ctx := openExample(), context.Background()
	show := func() {
		record, err := client.Records().Once(ctx, "email/order-42")
		if err != nil {
			fmt.Println(err)
			return
		}
		switch record.State {
		case holdfast.OnceDone:
			result, err := client.Records().Result(ctx, "email/order-42")
			fmt.Printf("done: %s, kept for %s, %v\n", result.Value, record.ExpiresIn.Round(time.Hour), err)
		case holdfast.OnceInProgress:
			fmt.Println("in progress by", record.Holder)
		case holdfast.OnceAbsent:
			fmt.Println("it was not done, or it was forgotten")
		}
	}
	show()
	client.Once(ctx, "email/order-42", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte("message 7"), nil })
	show()
	found, err := client.Records().Forget(ctx, "email/order-42")
	fmt.Println(found, err)
	show()
	// Output:
	// it was not done, or it was forgotten
	// done: message 7, kept for 24h0m0s, <nil>
	// true <nil>
	// it was not done, or it was forgotten
}

func ExampleRecords_List() {
	client, ctx := openExample(), context.Background()
	client.Once(ctx, "charge/42", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte("receipt 7"), nil })
	client.Once(ctx, "email/42", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, nil })
	list := func() error {
		for e, err := range client.Records().List(ctx, "charge/") {
			if err != nil {
				return err
			}
			fmt.Println(e.Key, e.State, e.Length, e.ExpiresIn.Round(time.Hour))
		}
		return nil
	}
	if err := list(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// charge/42 done 9 24h0m0s
}

// TestOncePageShowsTheExamples checks that all Go code in docs/once.md is part of an example, so
// that it is compiled and run.
func TestOncePageShowsTheExamples(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "once.md"))
	if err != nil {
		t.Fatal(err)
	}
	var examples string
	for _, file := range []string{"once_example_test.go", filepath.Join("oncehttp", "example_test.go")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples += oneLine(string(text))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 8 {
		t.Errorf("%d pieces of Go, want all that the page had", len(blocks))
	}
	for _, b := range blocks {
		for piece := range strings.SplitSeq(string(b[1]), "\n\n") { // each may be in another place
			if !strings.Contains(examples, oneLine(piece)) {
				t.Errorf("no example has\n%s", piece)
			}
		}
	}
}

// oneLine replaces each run of white space by one space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func ExampleOnceOptions() {
	client, ctx := openExample(), context.Background()
	opts := &holdfast.OnceOptions{
		TTL:       30 * time.Second,   // if the process dies, others may work after half a minute
		Retention: 7 * 24 * time.Hour, // once it is done, it is not done again for a week
	}
	for range 2 {
		result, err := client.Once(ctx, "invoice/42", opts, func(ctx context.Context, lease *holdfast.Lease) ([]byte, error) {
			fmt.Println("writing the invoice")
			return []byte("invoice-42.pdf"), nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s, replayed: %t\n", result.Value, result.Replayed)
	}
	record, err := client.Records().Once(ctx, "invoice/42")
	fmt.Println(record.State, "for", record.ExpiresIn.Round(time.Hour), err)
	// Output:
	// writing the invoice
	// invoice-42.pdf, replayed: false
	// invoice-42.pdf, replayed: true
	// done for 168h0m0s <nil>
}

// Each replica of a service calls Every when it starts. Here two do, with a short schedule.
func ExampleClient_Every() {
	client, ctx := openExample(), context.Background()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	schedule := holdfast.Periodic(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Second)

	done := make(chan error)
	for range 2 {
		go func() {
			done <- client.Every(ctx, "reports", schedule, nil, func(ctx context.Context, run holdfast.EveryRun) error {
				// Do the work of run.Scheduled, and pass run.Lease.Token() to the stores that it
				// changes.
				fmt.Println("attempt", run.Attempt, "on time:", time.Since(run.Scheduled) < time.Minute)
				stop()
				return nil
			})
		}()
	}
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			fmt.Println(err)
		}
	}

	s, err := client.Records().Schedule(context.Background(), "reports")
	fmt.Println(s.Done, s.Missed, s.Next.Sub(s.Last.Scheduled), err)
	// Output:
	// attempt 1 on time: true
	// 1 0 1s <nil>
}

func ExampleClient_Lead() {
	client, ctx := openExample(), context.Background()
	ctx, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	err := client.Lead(ctx, "scheduler", nil, func(ctx context.Context, l *holdfast.Lease) error {
		fmt.Println("leading", l.Name())
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				// Do one step, and pass l.Token() to the stores that it changes.
			case <-ctx.Done():
				return context.Cause(ctx) // stopped, or the lead is lost
			}
		}
	})
	fmt.Println(err)
	// Output:
	// leading scheduler
	// context deadline exceeded
}
