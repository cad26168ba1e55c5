// Package lease acquires, reads and ends leases for the clients of the server. It is the
// common base of the packages that answer requests about leases.
//
// # How it is made
//
// The result of a request is in the store alone, so that the next request may go to another
// server. The lease ID follows from the client's Idempotency-Key (key.go). An [Attempt] is one
// acquisition, of a lock or of do-once work, in one request or in several. All waiting
// requests share one place keeper.
package lease

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/places"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// RequestTimeout bounds a request to the store, with its repeats until the store answers.
// Together with LongestWait it is less than driver.TombstoneTTL, so that nothing is carried
// out for a request that was released meanwhile. INVARIANT I5.
const RequestTimeout = 4 * time.Second

// A Store is the store of the server, as requests about leases use it.
type Store struct {
	House  *door.House
	places places.Keeper[time.Time]
	ended  func(name string, id lockinfo.LeaseID)
}

// New returns the store of h. ended is called after a request has ended a lease.
func New(h *door.House, ended func(name string, id lockinfo.LeaseID)) *Store {
	d := &Store{House: h, ended: ended}
	d.places.Init(places.Owner[time.Time]{
		Queuer: h.Features.Queuer, Router: h.Features.Router, Now: time.Now,
		Spawn: func(send func(context.Context)) {
			ctx := context.Background()                                       // it ends with its limit
			go func() { _ = h.Guard(ctx, "refresh", func() { send(ctx) }) }() // or the places are due again
		},
		Limit: func(ctx context.Context) (context.Context, context.CancelFunc) { return ask.Limit(ctx, RequestTimeout) },
	})
	return d
}
