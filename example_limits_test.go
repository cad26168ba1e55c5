package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// A shop sells the items of a catalog, many at a time but each item to one buyer at a time. The
// catalog changes only when nothing is being sold. No caller waits for longer than two seconds, and
// no lock is held for longer than five.
type shop struct {
	client *holdfast.Client
	stock  map[string]int
}

// limits returns the options for a lock in this mode.
func limits(mode holdfast.Mode) *holdfast.AcquireOptions {
	return &holdfast.AcquireOptions{Mode: mode, MaxWait: 2 * time.Second, MaxHold: 5 * time.Second}
}

// sell takes the outer lock first, and shares it.
func (s *shop) sell(ctx context.Context, item string) error {
	return s.client.Do(ctx, "catalog", limits(holdfast.Shared), func(ctx context.Context, _ *holdfast.Lease) error {
		return s.client.Do(ctx, "catalog/"+item, limits(holdfast.Exclusive), func(ctx context.Context, _ *holdfast.Lease) error {
			if s.stock[item] == 0 {
				return errors.New("sold out")
			}
			s.stock[item]--
			return ctx.Err() // ctx ends when either lock is lost
		})
	})
}

// change holds the catalog alone: it waits for the present sales, but not for later ones.
func (s *shop) change(ctx context.Context, change func(stock map[string]int)) error {
	return s.client.Do(ctx, "catalog", limits(holdfast.Exclusive), func(context.Context, *holdfast.Lease) error {
		change(s.stock)
		return nil
	})
}

func Example_readersAndWriters() {
	ctx, s := context.Background(), &shop{client: openExample(), stock: map[string]int{"lamp": 1}}
	fmt.Println(s.sell(ctx, "lamp"))
	fmt.Println(s.sell(ctx, "lamp"))
	fmt.Println(s.change(ctx, func(stock map[string]int) { stock["lamp"] = 10 }))
	fmt.Println(s.sell(ctx, "lamp"), s.stock["lamp"])
	// Output:
	// <nil>
	// sold out
	// <nil>
	// <nil> 9
}
