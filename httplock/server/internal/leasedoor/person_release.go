package leasedoor

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// personRelease answers POST /v1/locks/{name}/hold/release: it ends the person's lease with
// the token that the client has seen. The holder needs the right acquire. Another caller
// needs the right break: it breaks the lease, and is recorded as the author.
func (d *leases) personRelease(ctx context.Context, w http.ResponseWriter, r *door.Request) error {
	name, err := r.Name("name")
	if err != nil {
		return err
	}
	if r.Need(caller.Break, name) != nil {
		if err := r.Need(caller.Acquire, name); err != nil {
			return err
		}
	}
	var want wire.HoldRelease
	if err := r.Read(&want); err != nil {
		return err
	}
	if err := mayAct(r, caller.Action{Kind: "release", Name: name, Token: want.FencingToken, Reason: want.Reason}); err != nil {
		return err
	}
	p := personLease{door: d, r: r, what: "release", name: name, token: want.FencingToken}
	if err := p.giveBack(ctx, want.Reason); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// giveBack ends the lease.
func (p *personLease) giveBack(ctx context.Context, reason string) error {
	h, own, err := p.look(ctx)
	switch {
	case p.isOver(err) && p.isRepeat(ctx):
		return nil
	case err != nil:
		return err
	case !own: // a break needs the token only, not the lease ID
		return p.endByToken(ctx, reason)
	}
	err = p.door.End(ctx, p.r, p.name, h.LeaseID)
	if errors.Is(err, driver.ErrLost) {
		return p.afterwards(ctx, err)
	}
	if err == nil {
		p.r.Audit("release", slog.String("name", p.name), slog.Uint64("fencing_token", p.token))
	}
	return err
}

// endByToken breaks the lease that has the token.
func (p *personLease) endByToken(ctx context.Context, reason string) error {
	broken, err := p.door.carryOutBreak(ctx, p.r, driver.BreakRequest{
		ID: lockinfo.NewLeaseID(), Name: p.name, Token: p.token, Author: p.r.Caller.Name, Reason: reason,
	})
	switch {
	case err != nil:
		return err
	case len(broken) == 0:
		return tokenIsOver(p.what, p.name, p.token)
	}
	return nil
}

// afterwards handles a release that found no lease. Either the lease has ended meanwhile, or
// the store is another server and hides the lease ID. In the latter case the token names the
// lease.
func (p *personLease) afterwards(ctx context.Context, lost error) error {
	switch _, err := p.find(ctx); {
	case p.isOver(err):
		return lost
	case err != nil:
		return err
	}
	return p.endByToken(ctx, "given back")
}

// isRepeat reports whether the caller has released the lease before, as far as the store
// remembers: breaks for a day, and releases if it keeps history. Without an answer, it does
// not count as a repeat.
func (p *personLease) isRepeat(ctx context.Context) bool {
	var broken []lockinfo.Broken
	var events []lockinfo.HistoryEvent
	f := &p.door.House.Features
	if f.Breaker != nil {
		broken, _ = f.Breaker.Breaks(ctx, p.name)
	}
	if f.Historian != nil {
		events, _ = f.Historian.History(ctx, p.name)
	}
	return slices.ContainsFunc(broken, func(b lockinfo.Broken) bool {
		return b.Token == p.token && b.Holder.Person && (b.Author == p.r.Caller.Name || p.own(b.Holder) && f.Callers)
	}) || slices.ContainsFunc(events, func(e lockinfo.HistoryEvent) bool {
		return e.Kind == lockinfo.HistoryReleased && e.Token == p.token && p.own(e.Holder)
	})
}
