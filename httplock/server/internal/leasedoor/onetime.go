package leasedoor

import (
	"log/slog"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/oncehttp"
	"github.com/holdfast-locks/holdfast/onetime"
	"github.com/holdfast-locks/holdfast/wire"
)

// collection is the name of the one that all servers share: that of onetime.Options by default.
const collection = "onetime"

// openTokens makes the service of one-time tokens, unless the store keeps none. It prunes
// from the start: who issues and redeems may have gone to other servers, or be gone.
func (d *leases) openTokens() {
	service, err := onetime.New(d.house.Client, &onetime.Options{Name: collection, Observer: d.observeTokens})
	if err == nil {
		err = service.Start()
	}
	if d.noTokens = err; err != nil {
		return
	}
	d.tokens = service
	d.counted.began = time.Now()
	d.house.OnClose(service.Close)
}

// observeTokens logs each round of pruning, even if nothing was over, so that one can see
// that somebody prunes.
func (d *leases) observeTokens(e observe.Event) {
	switch e.Kind {
	case observe.TokensPruned:
		d.house.Log.LogAttrs(e.Context, slog.LevelInfo, "one-time tokens pruned", slog.Int("count", e.Count))
	case observe.PruneFailed:
		d.house.Log.LogAttrs(e.Context, slog.LevelWarn, "one-time tokens not pruned", slog.Int("count", e.Count), slog.Any("error", e.Err))
	}
	d.counted.add(e)
	if d.house.Observer != nil {
		d.house.Observer(e)
	}
}

// token checks whether the caller may use one-time tokens. Their names are drawn, so that
// the prefixes of its names have no meaning for them.
func (d *leases) token(r *door.Request, body any) error {
	if !r.Caller.Rights.Has(caller.OneTime) {
		return &door.Refusal{Status: http.StatusForbidden, Code: "not-permitted", Detail: "you lack the right \"onetime\""}
	}
	if err := r.Read(body); err != nil {
		return err
	}
	return d.noTokens
}

// issue answers POST /v1/onetime.
func (d *leases) issue(w http.ResponseWriter, r *door.Request) error {
	var want wire.TokenRequest
	if err := d.token(r, &want); err != nil {
		return err
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
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	secret, err := d.tokens.Issue(ctx, payload, ms(want.TTLMS))
	if err != nil {
		return err
	}
	id, _ := d.tokens.ID(secret) // it was just made
	return door.Write(w, http.StatusCreated, wire.IssuedToken{Secret: secret, ID: id, TTLMS: want.TTLMS})
}

// redeem answers POST /v1/onetime/redeem. With an Idempotency-Key, a repeat within
// driver.RedeemGrace is handed the payload again.
func (d *leases) redeem(w http.ResponseWriter, r *door.Request) error {
	var want wire.TokenSecret
	if err := d.token(r, &want); err != nil {
		return err
	}
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	var opts onetime.RedeemOptions
	if r.Header.Get(oncehttp.Header) != "" {
		key, err := keyOf(r)
		if err != nil {
			return err
		}
		id, err := d.leaseID(ctx, r, "", key, forToken)
		if err != nil {
			return err
		}
		opts.RequestID = string(id)
	}
	payload, err := d.tokens.RedeemWith(ctx, want.Secret, &opts)
	if err != nil {
		return err
	}
	v := wire.Redeemed{Payload: string(payload)}
	if !utf8.Valid(payload) {
		v = wire.Redeemed{PayloadBytes: payload}
	}
	return door.Write(w, http.StatusOK, v)
}

// revoke answers POST /v1/onetime/revoke.
func (d *leases) revoke(w http.ResponseWriter, r *door.Request) error {
	var want wire.TokenSecret
	if err := d.token(r, &want); err != nil {
		return err
	}
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	if err := d.tokens.Revoke(ctx, want.Secret); err != nil {
		return err
	}
	id, err := d.tokens.ID(want.Secret)
	if err != nil {
		return err
	}
	return door.Write(w, http.StatusOK, wire.Revoked{ID: id})
}
