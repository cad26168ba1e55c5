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
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/wire"
)

// personRelease answers POST /v1/locks/{name}/hold/release: a person's lock is given back,
// exactly the lease of the token that the caller has seen. One's own takes the right
// acquire, and somebody else's break: that is a break, of which the store and the log know
// the author.
func (d *leases) personRelease(w http.ResponseWriter, r *door.Request) error {
	name, err := pathName(r, "name")
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
	if err := checkToken(p.want.FencingToken); err != nil {
		return err
	}
	if err := driver.CheckBreak(r.Caller.Name, p.want.Reason); err != nil {
		return door.Invalid(err.Error())
	}
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	if err := p.giveBack(ctx); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// A personLease is a lease that a request is about.
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
		return &door.Refusal{
			Status: http.StatusConflict, Code: "not-a-person",
			Detail: fmt.Sprintf("release %q: %s has it, which is not a person: it gives the lock back by itself, or break it", p.name, h.Holder),
		}
	case !p.own(h.Holder):
		return p.breakIt(ctx, p.want.Reason)
	}
	if err := p.r.Need(caller.Acquire, p.name); err != nil {
		return err
	}
	err = p.door.end(ctx, p.r, p.name, h.LeaseID)
	if errors.Is(err, driver.ErrLost) {
		return p.afterwards(ctx, err)
	}
	if err == nil {
		p.r.Audit("release", slog.String("name", p.name), slog.Uint64("fencing_token", p.want.FencingToken))
	}
	return err
}

// find returns the live lease that has the token.
func (p *personLease) find(ctx context.Context) (h driver.Holding, found bool, err error) {
	var lock driver.Lock
	f := ask.Until(ctx, requestTimeout, func(ctx context.Context) (err error) {
		lock, err = p.door.house.Engine.Inspect(ctx, p.name)
		return err
	})
	if err := f.Harmless(); err != nil {
		return h, false, fmt.Errorf("release %q: %w", p.name, err)
	}
	for _, h := range lock.Live() {
		if h.Token == p.want.FencingToken {
			return h, true, nil
		}
	}
	return h, false, nil
}

// own reports whether a lease is one that the caller has taken through a server: those who
// use the store themselves say who they are, and have a host.
func (p *personLease) own(h driver.Holder) bool {
	return h.Person && h.User == p.r.Caller.Name && h.Host == ""
}

// breakIt takes the lock away by the token, for which no lease ID is needed. A repeat has
// the same ID.
func (p *personLease) breakIt(ctx context.Context, reason string) error {
	if err := p.r.Need(caller.Break, p.name); err != nil {
		return err
	}
	return p.endByToken(ctx, reason)
}

func (p *personLease) endByToken(ctx context.Context, reason string) error {
	broken, err := p.door.carryOutBreak(ctx, p.r, driver.BreakRequest{
		ID: driver.NewLeaseID(), Name: p.name, Token: p.want.FencingToken, Author: p.r.Caller.Name, Reason: reason,
	})
	switch {
	case err != nil:
		return err
	case len(broken) == 0:
		return tokenIsOver("release", p.name, p.want.FencingToken)
	}
	return nil
}

// afterwards is what becomes of a release of one's own that has found no lease: it has
// ended meanwhile, or what the store shows is not its lease ID. A server whose store is
// another server sees those of others alone. Then the token says which lease is meant.
func (p *personLease) afterwards(ctx context.Context, lost error) error {
	switch _, found, err := p.find(ctx); {
	case err != nil:
		return err
	case !found:
		return lost
	}
	return p.endByToken(ctx, "given back")
}

// isRepeat reports whether the caller has given the lease back before, as far as the store
// remembers it: what was broken for a day, and what was released if it keeps history.
func (p *personLease) isRepeat(ctx context.Context) bool {
	f := &p.door.house.Features
	if f.Breaker != nil {
		broken, _ := f.Breaker.Breaks(ctx, p.name) // without an answer, it is not known to be one
		for _, b := range broken {
			if b.Token == p.want.FencingToken && b.Author == p.r.Caller.Name && b.Holder.Person {
				return true
			}
		}
	}
	if f.Historian != nil {
		events, _ := f.Historian.History(ctx, p.name) // likewise
		for _, e := range events {
			if e.Kind == driver.EventReleased && e.Token == p.want.FencingToken && p.own(e.Holder) {
				return true
			}
		}
	}
	return false
}
