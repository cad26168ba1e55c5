package leasedoor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

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
	p := personLease{door: d, r: r, name: name}
	if r.Need(caller.Break, p.name) != nil {
		if err := r.Need(caller.Acquire, p.name); err != nil {
			return err
		}
	}
	if err := r.Read(&p.want); err != nil {
		return err
	}
	if err := mayAct(r, caller.Action{Kind: "release", Name: name, Token: p.want.FencingToken, Reason: p.want.Reason}); err != nil {
		return err
	}
	if err := p.giveBack(ctx); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// A personLease is a request about a person's lease.
type personLease struct {
	door *leases
	r    *door.Request
	name string
	want wire.HoldRelease
}

// giveBack ends the lease.
func (p *personLease) giveBack(ctx context.Context) error {
	h, found, err := p.find(ctx)
	switch {
	case err != nil:
		return err
	case !found && p.isRepeat(ctx):
		return nil
	case !found:
		return tokenIsOver("release", p.name, p.want.FencingToken)
	case !h.Holder.Person:
		return notAPerson("release", p.name, h.Holder)
	case !p.own(h.Holder): // a break needs the token only, not the lease ID
		if err := p.r.Need(caller.Break, p.name); err != nil {
			return err
		}
		return p.endByToken(ctx, p.want.Reason)
	}
	if err := p.r.Need(caller.Acquire, p.name); err != nil {
		return err
	}
	err = p.door.End(ctx, p.r, p.name, h.LeaseID)
	if errors.Is(err, driver.ErrLost) {
		return p.afterwards(ctx, err)
	}
	if err == nil {
		p.r.Audit("release", slog.String("name", p.name), slog.Uint64("fencing_token", p.want.FencingToken))
	}
	return err
}

// notAPerson returns the refusal of a request about the lease of a process.
func notAPerson(what, name string, h lockinfo.Holder) error {
	return &door.Refusal{
		Status: http.StatusConflict, Code: "not-a-person",
		Detail: fmt.Sprintf("%s %q: %s has it, which is not a person: it gives the lock back by itself, or break it", what, name, h),
	}
}

// find returns the live lease that has the token.
func (p *personLease) find(ctx context.Context) (h lockinfo.Holding, found bool, err error) {
	lock, _, err := p.door.Inspect(ctx, p.name)
	if err != nil {
		return h, false, fmt.Errorf("release %q: %w", p.name, err)
	}
	for _, h := range lock.Live() {
		if h.Token == p.want.FencingToken {
			return h, true, nil
		}
	}
	return h, false, nil
}

// own reports whether the caller acquired the lease through a server. Clients that use the
// store directly choose their user name, but have a host. If the store is another server, that
// server has set the Caller of all leases to this server.
func (p *personLease) own(h lockinfo.Holder) bool {
	return h.Person && h.User == p.r.Caller.Name && h.Host == "" && (h.Caller == p.r.Found() || p.door.House.Features.Callers)
}

// endByToken breaks the lease that has the token.
func (p *personLease) endByToken(ctx context.Context, reason string) error {
	broken, err := p.door.carryOutBreak(ctx, p.r, driver.BreakRequest{
		ID: lockinfo.NewLeaseID(), Name: p.name, Token: p.want.FencingToken, Author: p.r.Caller.Name, Reason: reason,
	})
	switch {
	case err != nil:
		return err
	case len(broken) == 0:
		return tokenIsOver("release", p.name, p.want.FencingToken)
	}
	return nil
}

// afterwards handles a release that found no lease. Either the lease has ended meanwhile, or
// the store is another server and hides the lease ID. In the latter case the token names the
// lease.
func (p *personLease) afterwards(ctx context.Context, lost error) error {
	switch _, found, err := p.find(ctx); {
	case err != nil:
		return err
	case !found:
		return lost
	}
	return p.endByToken(ctx, "given back")
}

// isRepeat reports whether the caller has released the lease before, as far as the store
// remembers: breaks for a day, and releases if it keeps history.
func (p *personLease) isRepeat(ctx context.Context) bool {
	f := &p.door.House.Features
	if f.Breaker != nil {
		broken, _ := f.Breaker.Breaks(ctx, p.name) // without an answer, it does not count as a repeat
		for _, b := range broken {
			if b.Token == p.want.FencingToken && b.Holder.Person && (b.Author == p.r.Caller.Name || p.own(b.Holder) && p.door.House.Features.Callers) {
				return true
			}
		}
	}
	if f.Historian != nil {
		events, _ := f.Historian.History(ctx, p.name) // likewise
		for _, e := range events {
			if e.Kind == lockinfo.HistoryReleased && e.Token == p.want.FencingToken && p.own(e.Holder) {
				return true
			}
		}
	}
	return false
}
