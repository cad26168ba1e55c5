package leasedoor

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/oncehttp"
	"github.com/holdfast-locks/holdfast/wire"
)

// breakLock answers POST /v1/locks/{name}/break. The author is who was authenticated. It
// is about the lease that the caller has seen, by its token, so that it never hits whoever
// was granted the lock meanwhile.
func (d *leases) breakLock(w http.ResponseWriter, r *door.Request) error {
	name, err := named(r, caller.Break)
	if err != nil {
		return err
	}
	var want wire.BreakRequest
	if err := r.Read(&want); err != nil {
		return err
	}
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	req := driver.BreakRequest{
		ID: driver.NewLeaseID(), Name: name, Token: want.FencingToken, Older: want.Older, Closed: want.Closed,
		Author: r.Caller.Name, Reason: want.Reason,
	}
	if err := driver.CheckBreak(req.Author, req.Reason); err != nil {
		return door.Invalid(err.Error())
	}
	if req.Token == 0 || req.Token > driver.MaxToken {
		return door.Invalid("fencing_token: want that of the lease that is to end, as GET /v1/locks/{name} shows it")
	}
	if r.Header.Get(oncehttp.Header) != "" { // then a repeat is answered as the first time
		key, err := keyOf(r)
		if err != nil {
			return err
		}
		if req.ID, err = d.leaseID(ctx, r, name, key, forBreak); err != nil {
			return err
		}
	}
	breaker := d.house.Features.Breaker
	if breaker == nil {
		return fmt.Errorf("break %q: breaking locks is %w", name, driver.ErrUnsupported)
	}
	var broken []driver.Broken
	f := ask.Until(ctx, requestTimeout, func(ctx context.Context) (err error) {
		broken, err = breaker.Break(ctx, req)
		return err
	})
	if err := f.Effective(); err != nil {
		return fmt.Errorf("break %q: %w", name, err)
	}
	r.Audit("break", slog.String("name", name), slog.Uint64("fencing_token", req.Token), slog.String("reason", req.Reason), slog.Int("broken", len(broken)))
	if len(broken) == 0 {
		return &door.Refusal{
			Status: http.StatusGone, Code: "not-held",
			Detail: fmt.Sprintf("break %q: nobody has it with the token %d (any more): look who has it now", name, req.Token),
		}
	}
	return door.Write(w, http.StatusOK, wire.Broke{Broken: wire.BrokenOf(broken)})
}
