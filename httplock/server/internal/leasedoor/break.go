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
	if err := checkToken(req.Token); err != nil {
		return err
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
	broken, err := d.carryOutBreak(ctx, r, req)
	if err != nil {
		return err
	}
	if len(broken) == 0 {
		return tokenIsOver("break", name, req.Token)
	}
	return door.Write(w, http.StatusOK, wire.Broke{Broken: wire.BrokenOf(broken)})
}

// carryOutBreak sends a break until the store has answered it, and writes it down.
func (d *leases) carryOutBreak(ctx context.Context, r *door.Request, req driver.BreakRequest) ([]driver.Broken, error) {
	breaker := d.house.Features.Breaker
	if breaker == nil {
		return nil, fmt.Errorf("break %q: breaking locks is %w", req.Name, driver.ErrUnsupported)
	}
	var broken []driver.Broken
	f := ask.Until(ctx, requestTimeout, func(ctx context.Context) (err error) {
		broken, err = breaker.Break(ctx, req)
		return err
	})
	if err := f.Effective(); err != nil {
		return nil, fmt.Errorf("break %q: %w", req.Name, err)
	}
	r.Audit("break", slog.String("name", req.Name), slog.Uint64("fencing_token", req.Token), slog.String("reason", req.Reason), slog.Int("broken", len(broken)))
	return broken, nil
}

// tokenIsOver is the refusal of a request about a lease by its token that is over.
func tokenIsOver(what, name string, token uint64) error {
	return &door.Refusal{
		Status: http.StatusGone, Code: "not-held",
		Detail: fmt.Sprintf("%s %q: nobody has it with the token %d (any more): look who has it now", what, name, token),
	}
}

// checkToken checks the token by which a request says which lease it is about.
func checkToken(token uint64) error {
	if token == 0 || token > driver.MaxToken {
		return door.Invalid("fencing_token: want that of the lease that is to end, as GET /v1/locks/{name} shows it")
	}
	return nil
}
