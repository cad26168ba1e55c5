package leasedoor

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// breakLock answers POST /v1/locks/{name}/break. The author is the authenticated caller.
// The token names the lease that the client has seen, so that a break never hits a later
// holder.
func (d *leases) breakLock(ctx context.Context, w http.ResponseWriter, r *door.Request, name string) error {
	var want wire.BreakRequest
	if err := r.Read(&want); err != nil {
		return err
	}
	req := driver.BreakRequest{
		ID: lockinfo.NewLeaseID(), Name: name, Token: want.FencingToken, Older: want.Older, Closed: want.Closed,
		Author: r.Caller.Name, Reason: want.Reason,
	}
	if err := mayAct(r, caller.Action{Kind: "break", Name: name, Token: req.Token, Older: req.Older, Reason: req.Reason}); err != nil {
		return err
	}
	if lease.HasKey(r) { // a repeat then gets the same reply
		var err error
		if req.ID, err = d.LeaseID(ctx, r, name, lease.ForBreak); err != nil {
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

// carryOutBreak sends a break until the store answers, and logs it.
func (d *leases) carryOutBreak(ctx context.Context, r *door.Request, req driver.BreakRequest) ([]lockinfo.Broken, error) {
	breaker := d.House.Features.Breaker
	if breaker == nil {
		return nil, fmt.Errorf("break %q: breaking locks is %w", req.Name, driver.ErrUnsupported)
	}
	broken, f := ask.Answer(ctx, lease.RequestTimeout, breaker.Break, req)
	if err := f.Effective(); err != nil {
		return nil, fmt.Errorf("break %q: %w", req.Name, err)
	}
	// The key may have been used for another lease, whose record is in the reply, too.
	broken = slices.DeleteFunc(broken, func(b lockinfo.Broken) bool { return !req.Hits(b.Token, req.Closed) })
	r.Audit("break", slog.String("name", req.Name), slog.Uint64("fencing_token", req.Token), slog.String("reason", req.Reason), slog.Int("broken", len(broken)))
	return broken, nil
}

// tokenIsOver returns the refusal of a request whose token names no live lease.
func tokenIsOver(what, name string, token uint64) error {
	return &door.Refusal{
		Status: http.StatusGone, Code: "not-held",
		Detail: fmt.Sprintf("%s %q: no lease has the token %d (any more): look who holds it now", what, name, token),
	}
}

// mayAct returns a refusal unless the caller may do a, to the lease that a.Token names.
func mayAct(r *door.Request, a caller.Action) error {
	if a.Token == 0 || a.Token > driver.MaxToken {
		return door.Invalid("fencing_token: want that of the lease that is to end, as GET /v1/locks/{name} shows it")
	}
	if err := driver.CheckBreak(r.Caller.Name, a.Reason); err != nil {
		return door.Invalid(err.Error())
	}
	return r.Act(a)
}
