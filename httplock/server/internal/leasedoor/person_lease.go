package leasedoor

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A personLease is a person's lease that a request is about.
type personLease struct {
	door  *leases
	r     *door.Request
	what  string // what the request does with it, for errors
	name  string
	token uint64
}

// look returns the lease if the caller may change it, and whether the lease is the caller's own. A
// caller needs the right acquire for its own lease, and the right break for another person's.
func (p *personLease) look(ctx context.Context) (h lockinfo.Holding, own bool, err error) {
	h, err = p.find(ctx)
	switch {
	case err != nil:
		return h, false, err
	case !h.Holder.Person:
		return h, false, &door.Refusal{
			Status: http.StatusConflict, Code: "not-a-person",
			Detail: fmt.Sprintf("%s %q: %s has it, which is not a person: it gives the lock back by itself, or break it", p.what, p.name, h.Holder),
		}
	case !p.own(h.Holder):
		return h, false, p.r.Need(caller.Break, p.name)
	}
	return h, true, p.r.Need(caller.Acquire, p.name)
}

// find returns the live lease that has the token.
func (p *personLease) find(ctx context.Context) (h lockinfo.Holding, err error) {
	lock, _, err := p.door.Inspect(ctx, p.name)
	if err != nil {
		return h, fmt.Errorf("%s %q: %w", p.what, p.name, err)
	}
	for _, h := range lock.Live() {
		if h.Token == p.token {
			return h, nil
		}
	}
	return h, tokenIsOver(p.what, p.name, p.token)
}

// isOver reports whether err means that no live lease has the token.
func (p *personLease) isOver(err error) bool {
	refusal, ok := errors.AsType[*door.Refusal](err)
	return ok && refusal.Code == "not-held"
}

// own reports whether the caller acquired the lease through a server. Clients that use the
// store directly choose their user name, but have a host. If the store is another server, that
// server has set the Caller of all leases to this server.
func (p *personLease) own(h lockinfo.Holder) bool {
	return h.Person && h.User == p.r.Caller.Name && h.Host == "" && (h.Caller == p.r.Found() || p.door.House.Features.Callers)
}
