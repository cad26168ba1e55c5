package leasedoor

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// release answers POST /v1/leases/release. It leaves a tombstone, so that a copy of the
// request for the lease, which may still be under way, is granted nothing (INVARIANT I5).
func (d *leases) release(ctx context.Context, w http.ResponseWriter, r *door.Request, body wire.LeaseRefs) error {
	if body.LeaseID == "" && body.Leases == nil && lease.HasKey(r) {
		return d.byKey(ctx, w, r, body.Name)
	}
	b, err := targetsOf(r, body, noTTL)
	if err != nil {
		return err
	}
	err = r.Each(len(b.all), func(i int) { b.all[i].err = d.End(ctx, r, b.all[i].Name, b.all[i].id()) })
	if err != nil {
		return err
	}
	return b.answer(w, r, done)
}

// byKey releases the lease or place of an Idempotency-Key, for clients that do not know
// their lease ID: their request was not answered, or is in the queue. Without a lease it
// leaves a tombstone.
func (d *leases) byKey(ctx context.Context, w http.ResponseWriter, r *door.Request, name string) error {
	if err := driver.CheckName(name); err != nil {
		return door.Invalid(err.Error())
	}
	if err := r.Need(caller.Acquire, name); err != nil {
		return err
	}
	id, err := d.LeaseID(ctx, r, name, lease.ForLock)
	if err != nil {
		return err
	}
	for _, id := range []lockinfo.LeaseID{lease.Labelled(id, false), lease.Labelled(id, true)} {
		if err := d.End(ctx, r, name, id); err != nil && !errors.Is(err, driver.ErrLost) {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
