package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// A shop sells items of a catalog, many at the same time and two never of the same item,
// and changes the catalog when nobody sells. Nobody waits for longer than two seconds, and
// nobody keeps others waiting for longer than five.
type shop struct {
	client *holdfast.Client
	stock  map[string]int
}

// limits are those of a lock, in this mode.
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
			return ctx.Err() // it ends when either lock is lost
		})
	})
}

// change has the catalog for itself: it waits for those who sell, but not for those who
// come later.
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
