package leasedoor

import (
	"context"
	"fmt"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// downgrade answers POST /v1/leases/downgrade.
func (d *leases) downgrade(ctx context.Context, w http.ResponseWriter, r *door.Request, ref wire.LeaseRef) error {
	if err := checkRef(r, &ref, noTTL); err != nil {
		return err
	}
	if err := r.Need(caller.Acquire, ref.Name); err != nil {
		return err
	}
	h, err := d.share(ctx, ref)
	if err != nil {
		return d.About(ctx, "downgrade", ref.Name, lockinfo.LeaseID(ref.LeaseID), err)
	}
	return door.Write(w, http.StatusOK, wire.Downgraded{
		LeaseID: ref.LeaseID, Name: ref.Name, Mode: lockinfo.Shared.String(), Token: wire.TokenOf(h.Token),
		ExpiresInMS: max(0, h.Left()).Milliseconds(),
	})
}

// share makes an exclusive lease shared, and returns it as it was before; only its mode
// changes. A lease that is shared already stays shared, so a repeat does no harm.
func (d *leases) share(ctx context.Context, ref wire.LeaseRef) (h lease.Holding, err error) {
	engine := d.House.Features.Downgrader
	if engine == nil {
		return h, fmt.Errorf("shared mode is %w", driver.ErrUnsupported)
	}
	h, err = d.Holding(ctx, ref.Name, lockinfo.LeaseID(ref.LeaseID))
	switch {
	case err != nil:
		return h, err
	case ref.FencingToken != 0 && ref.FencingToken != h.Token, h.Left() <= 0:
		return h, driver.ErrLost
	case h.Mode.Limit() != 0:
		return h, fmt.Errorf("%w lease: a semaphore has no exclusive one", driver.ErrInvalid)
	}
	f := ask.Until(ctx, lease.RequestTimeout, func(ctx context.Context) error {
		return engine.Downgrade(ctx, driver.DowngradeRequest{Name: ref.Name, LeaseID: lockinfo.LeaseID(ref.LeaseID)})
	})
	return h, f.Effective()
}
