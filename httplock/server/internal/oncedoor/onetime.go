package oncedoor

import (
	"context"
	"log/slog"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/onetime"
	"github.com/holdfast-locks/holdfast/wire"
)

// collection is the collection that all servers share: the default of onetime.Options.
const collection = "onetime"

// openTokens makes the service of one-time tokens, unless the store keeps none. The service
// prunes from the start: clients that issued tokens may never come back to this server.
func (d *desk) openTokens() {
	service, err := onetime.New(d.House.Client, &onetime.Options{Name: collection, Observer: d.observeTokens})
	if err == nil {
		err = service.Start()
	}
	if d.noTokens = err; err != nil {
		return
	}
	d.tokens = service
	d.counted.began = time.Now()
	d.House.OnClose(service.Close)
}

// observeTokens logs each round of pruning, even one that pruned nothing, to show that it
// happens.
func (d *desk) observeTokens(e observe.Event) {
	switch e.Kind {
	case observe.TokensPruned:
		d.House.Log.LogAttrs(e.Context, slog.LevelInfo, "one-time tokens pruned", slog.Int("count", e.Count))
	case observe.PruneFailed:
		d.House.Log.LogAttrs(e.Context, slog.LevelWarn, "one-time tokens not pruned", slog.Int("count", e.Count), slog.Any("error", e.Err))
	}
	d.counted.add(e)
	if d.House.Observer != nil {
		d.House.Observer(e)
	}
}

// tokenMemory is how long the store knows a token after its TTL: the default of package onetime.
const tokenMemory = 24 * time.Hour

// issue answers POST /v1/onetime.
func (d *desk) issue(ctx context.Context, w http.ResponseWriter, r *door.Request, want wire.TokenRequest) error {
	if d.noTokens != nil {
		return d.noTokens
	}
	payload := []byte(want.Payload)
	if want.PayloadBytes != nil {
		if want.Payload != "" {
			return door.Invalid("the body has payload and payload_base64: want one of them")
		}
		payload = want.PayloadBytes
	}
	if err := r.NewWork(); err != nil {
		return err
	}
	limits, drawn := r.House.Limits, string(lockinfo.NewLeaseID()) // the key until the ID is known
	if err := limits.Keep(r.Caller, drawn, len(payload), lease.MS(want.TTLMS)+tokenMemory, false); err != nil {
		return err
	}
	secret, err := d.tokens.Issue(ctx, payload, lease.MS(want.TTLMS))
	if err != nil {
		if lease.Definite(err) {
			limits.Dropped(drawn)
		}
		return err
	}
	id, _ := d.tokens.ID(secret) // it was just made
	limits.Dropped(drawn)
	_ = limits.Keep(r.Caller, limit.Token(driver.Digest(id)), len(payload), lease.MS(want.TTLMS)+tokenMemory, true) // there is room for it
	return door.Write(w, http.StatusCreated, wire.IssuedToken{Secret: secret, ID: id, TTLMS: want.TTLMS})
}

// redeem answers POST /v1/onetime/redeem. With an Idempotency-Key, a repeat within
// driver.RedeemGrace gets the payload again.
func (d *desk) redeem(ctx context.Context, w http.ResponseWriter, r *door.Request, want wire.TokenSecret) error {
	if d.noTokens != nil {
		return d.noTokens
	}
	var opts onetime.RedeemOptions
	if lease.HasKey(r) {
		id, err := d.LeaseID(ctx, r, "", lease.ForToken)
		if err != nil {
			return err
		}
		opts.RequestID = string(id)
	}
	payload, err := d.tokens.RedeemWith(ctx, want.Secret, &opts)
	if err != nil {
		return err
	}
	if id, err := d.tokens.ID(want.Secret); err == nil {
		r.House.Limits.Emptied(limit.Token(driver.Digest(id)))
	}
	v := wire.Redeemed{Payload: string(payload)}
	if !utf8.Valid(payload) {
		v = wire.Redeemed{PayloadBytes: payload}
	}
	return door.Write(w, http.StatusOK, v)
}

// revoke answers POST /v1/onetime/revoke.
func (d *desk) revoke(ctx context.Context, w http.ResponseWriter, r *door.Request, want wire.TokenSecret) error {
	if d.noTokens != nil {
		return d.noTokens
	}
	if err := d.tokens.Revoke(ctx, want.Secret); err != nil {
		return err
	}
	id, err := d.tokens.ID(want.Secret)
	if err != nil {
		return err
	}
	r.House.Limits.Emptied(limit.Token(driver.Digest(id)))
	return door.Write(w, http.StatusOK, wire.Revoked{ID: id})
}
