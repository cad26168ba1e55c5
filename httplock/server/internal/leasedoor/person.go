package leasedoor

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// personHold answers POST /v1/locks/{name}/hold: a person acquires the lock for a fixed time,
// or lengthens that time. The lease is not renewed. The response has no lease ID, because
// personRelease takes the token.
func (d *leases) personHold(ctx context.Context, w http.ResponseWriter, r *door.Request, name string) error {
	want, err := d.wantedHold(r)
	if err != nil {
		return err
	}
	if want.FencingToken != 0 {
		return d.lengthenHold(ctx, w, r, name, want)
	}
	a, err := d.beginHold(r, name, want)
	if err != nil {
		return err
	}
	g, err := a.WaitPatiently()
	if err != nil {
		return err
	}
	r.Audit("hold", slog.String("name", a.Req.Name), slog.Uint64("fencing_token", g.Token), slog.String("for", a.Req.TTL.String()), slog.String("reason", a.Req.Holder.Reason))
	return lease.Answer(w, g.Status(), g.Token, wire.Hold{
		Name: a.Req.Name, Mode: a.Req.Mode.Kind(), Token: wire.TokenOf(g.Token),
		ForMS: a.Req.TTL.Milliseconds(), ExpiresInMS: a.Left(g), Repeated: g.Repeated,
	})
}

// wantedHold reads and checks a request for a hold.
func (d *leases) wantedHold(r *door.Request) (want wire.HoldRequest, err error) {
	if err := r.Read(&want); err != nil {
		return want, err
	}
	longest := holdfast.MaxTTL
	if most := d.House.Features.MaxTTL; most > 0 {
		longest = min(longest, most)
	}
	switch {
	case want.ForMS < holdfast.MinTTL.Milliseconds() || lease.MS(want.ForMS) > longest:
		return want, door.Invalid(fmt.Sprintf("for_ms: want %d to %d, for how long you hold the lock: this store keeps no lease for longer than %s",
			holdfast.MinTTL.Milliseconds(), longest.Milliseconds(), lockinfo.Span(longest)))
	case want.FencingToken != 0 && (want.Mode != "" || want.Limit != 0 || want.Permits != 0):
		return want, door.Invalid("the body has fencing_token, and mode, limit or permits beside it: a hold that is lengthened keeps those")
	case strings.TrimSpace(want.Reason) == "":
		return want, door.Invalid("reason: say why you hold the lock")
	}
	return want, nil
}

// beginHold returns the attempt to acquire a hold.
func (d *leases) beginHold(r *door.Request, name string, want wire.HoldRequest) (*lease.Attempt, error) {
	if err := r.Act(caller.Action{Kind: "hold", Name: name, Reason: want.Reason}); err != nil {
		return nil, err
	}
	a, err := d.Checked(r, wire.LeaseRequest{
		Name: name, Mode: want.Mode, Limit: want.Limit, Permits: want.Permits, TTLMS: want.ForMS, ShortTTL: true, Reason: want.Reason,
	})
	if err != nil {
		return nil, err
	}
	a.Req.Holder.Person = true
	return a, a.Admit(caller.Acquire, lease.ForHold)
}
