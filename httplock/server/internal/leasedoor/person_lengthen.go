package leasedoor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/wire"
)

// lengthenHold lengthens a person's hold. The holder needs the right acquire; another caller
// needs the right break as well. It never shortens the hold, so a repeat is harmless.
func (d *leases) lengthenHold(ctx context.Context, w http.ResponseWriter, r *door.Request, name string, want wire.HoldRequest) error {
	if err := mayAct(r, caller.Action{Kind: "hold", Name: name, Token: want.FencingToken, Reason: want.Reason}); err != nil {
		return err
	}
	p := personLease{door: d, r: r, what: "hold", name: name, token: want.FencingToken}
	h, _, err := p.look(ctx)
	if err != nil {
		return err
	}
	ttl := lease.MS(want.ForMS)
	done := d.extendPart(ctx, []driver.ExtendRequest{{Name: name, LeaseID: h.LeaseID, TTL: ttl, Token: h.Token}})[0]
	if errors.Is(done.err, driver.ErrLost) {
		if _, err := p.find(ctx); err == nil { // the store is another server, which hides lease IDs
			return fmt.Errorf("hold %q: lengthening it is %w by the store, which is a server that hides lease IDs", name, driver.ErrUnsupported)
		}
		return tokenIsOver("hold", name, want.FencingToken)
	}
	if done.err != nil {
		return fmt.Errorf("hold %q: %w", name, done.err)
	}
	r.Audit("hold", slog.String("name", name), slog.Uint64("fencing_token", h.Token), slog.String("lengthened_to", ttl.String()), slog.String("reason", want.Reason))
	left := max(h.ExpiresIn, ttl) - time.Since(done.sent)
	return lease.Answer(w, http.StatusOK, h.Token, wire.Hold{
		Name: name, Mode: h.Mode.Kind(), Token: wire.TokenOf(h.Token), ForMS: want.ForMS, ExpiresInMS: max(0, left).Milliseconds(),
	})
}
