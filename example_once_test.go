package holdfast_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
)

func ExampleOnceOptions() {
	client, ctx := openExample(), context.Background()
	opts := &holdfast.OnceOptions{
		TTL:       30 * time.Second,   // if the process dies, others may work after half a minute
		Retention: 7 * 24 * time.Hour, // once it is done, nobody works again for a week
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
	status, err := client.OnceStatus(ctx, "invoice/42")
	fmt.Println(status.State, "for", status.ExpiresIn.Round(time.Hour), err)
	// Output:
	// writing the invoice
	// invoice-42.pdf, replayed: false
	// invoice-42.pdf, replayed: true
	// done for 168h0m0s <nil>
}
