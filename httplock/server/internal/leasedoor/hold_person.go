package leasedoor

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/wire"
)

// personHold answers POST /v1/locks/{name}/hold: the caller holds the lock, as a person,
// for as long as was said. Nobody renews the lease, and nobody waits for it here. The lease
// ID stays where it is: what gives the lock back is its token, see personRelease.
func (d *leases) personHold(w http.ResponseWriter, r *door.Request) error {
	a, err := d.beginHold(r)
	if err != nil {
		return err
	}
	g, err := a.waitPatiently()
	if err != nil {
		return err
	}
	r.Audit("hold", slog.String("name", a.req.Name), slog.Uint64("fencing_token", g.token), slog.String("for", a.req.TTL.String()), slog.String("reason", a.req.Holder.Reason))
	w.Header().Set(tokenHeader, strconv.FormatUint(g.token, 10))
	return door.Write(w, http.StatusCreated, wire.Hold{
		Name: a.req.Name, Mode: a.req.Mode.String(), Token: wire.TokenOf(g.token),
		ForMS: a.req.TTL.Milliseconds(), ExpiresInMS: left(a.req.TTL, g.sent),
	})
}

// beginHold is begin for a person.
func (d *leases) beginHold(r *door.Request) (*attempt, error) {
	name, err := named(r, caller.Acquire)
	if err != nil {
		return nil, err
	}
	var want wire.HoldRequest
	if err := r.Read(&want); err != nil {
		return nil, err
	}
	longest := holdfast.MaxTTL
	if most := d.house.Features.MaxTTL; most > 0 {
		longest = min(longest, most)
	}
	switch {
	case want.ForMS < holdfast.MinTTL.Milliseconds() || ms(want.ForMS) > longest:
		return nil, door.Invalid(fmt.Sprintf("for_ms: want %d to %d, for how long you hold the lock: this store keeps no lease for longer than %s",
			holdfast.MinTTL.Milliseconds(), longest.Milliseconds(), driver.Span(longest)))
	case strings.TrimSpace(want.Reason) == "":
		return nil, door.Invalid("reason: say why you hold the lock")
	}
	a := &attempt{door: d, r: r, want: wire.LeaseRequest{
		Name: name, Mode: want.Mode, Limit: want.Limit, Permits: want.Permits, TTLMS: want.ForMS, Reason: want.Reason,
	}}
	if a.req, err = acquireRequest(r, &a.want); err != nil {
		return nil, err
	}
	a.req.Holder.Person = true
	return a, a.admit(caller.Acquire, forHold)
}
