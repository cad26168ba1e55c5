package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// End releases a lease, or leaves the queue.
func (d *Store) End(ctx context.Context, r *door.Request, name string, id lockinfo.LeaseID) error {
	keep, err := d.keepFor(ctx, name, id)
	if err == nil {
		err = d.Cancel(ctx, driver.ReleaseRequest{Name: name, LeaseID: id, KeepFor: keep, Cancel: true})
	}
	if err == nil || errors.Is(err, driver.ErrLost) {
		d.House.Limits.Ended(r.Caller, limit.Lease(name, id))
		d.ended(name, id)
	}
	return d.About(ctx, "release", name, id, err)
}

// Cancel sends a release until the store answers. If the lease is lost after a copy without a
// reply, that copy has released it.
func (d *Store) Cancel(ctx context.Context, req driver.ReleaseRequest) error {
	uncertain := false
	f := ask.Until(ctx, RequestTimeout, func(ctx context.Context) error {
		err := d.House.Engine.Release(ctx, req)
		uncertain = uncertain || err != nil && !driver.Definite(err)
		return err
	})
	if f.Lost() && uncertain {
		return nil
	}
	return f.Effective()
}

// About adds the name of a lease to an error, and why the lease was lost.
func (d *Store) About(ctx context.Context, what, name string, id lockinfo.LeaseID, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, driver.ErrLost) {
		err = d.why(ctx, name, id)
	}
	err = fmt.Errorf("%s %q: %w", what, name, err)
	broken, ok := errors.AsType[*lockinfo.BrokenError](err)
	if !ok {
		return err
	}
	refusal := *door.RefusalOf(err)
	refusal.More = func(p *wire.Problem) { p.Author, p.Reason = broken.Author, broken.Reason }
	return &refusal
}

// why returns the break that ended a lease, if the store remembers one.
func (d *Store) why(ctx context.Context, name string, id lockinfo.LeaseID) error {
	if breaker := d.House.Features.Breaker; breaker != nil {
		broken, _ := breaker.Breaks(ctx, name) // without an answer, it counts as lost
		for _, b := range broken {
			if id.Is(b.LeaseID) {
				return b.Err()
			}
		}
	}
	return driver.ErrLost
}
