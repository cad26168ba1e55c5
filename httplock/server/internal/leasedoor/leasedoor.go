// Package leasedoor has the requests of people: leases, streams that hold them, do-once
// work, one-time tokens, and what is known of locks.
//
// # How it is made
//
// A request is carried out on the driver, and what comes of it stands in the store alone,
// so that the next may go through another server. What a caller asks for stands under the
// lease ID that its Idempotency-Key makes (key.go). An [attempt] is one acquisition, of a
// lock or of do-once work, in one request or in pieces; all that wait for an answer share
// one place keeper.
package leasedoor

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/places"
	"github.com/holdfast-locks/holdfast/onetime"
)

// requestTimeout bounds one question to the store, which is repeated as long until it is
// answered. With the longest wait it is less than driver.TombstoneTTL, so that nothing is
// carried out for a request that was released meanwhile. INVARIANT I5.
const requestTimeout = 4 * time.Second

// A leases is the door, with what its requests share.
type leases struct {
	house  *door.House
	places places.Keeper[time.Time]
	holds  holds

	tokens   *onetime.Service
	noTokens error // why there is no such service
	counted  tokenCounts
}

// Routes adds what is below /v1. leave leaves the leases that streams hold, when the
// server drains: they go on at another one.
func Routes(mux *http.ServeMux, h *door.House) (leave func()) {
	d := &leases{house: h}
	d.places.Init(places.Owner[time.Time]{
		Queuer: h.Features.Queuer, Router: h.Features.Router, Now: time.Now,
		Spawn: func(send func(context.Context)) {
			ctx := context.Background()                                       // it ends with its limit
			go func() { _ = h.Guard(ctx, "refresh", func() { send(ctx) }) }() // or the places are due again
		},
		Limit: func(ctx context.Context) (context.Context, context.CancelFunc) { return ask.Limit(ctx, requestTimeout) },
	})
	d.openTokens()
	handle := func(pattern string, f door.Func) { mux.Handle(pattern, h.Handle(f)) }
	handle("POST /v1/leases", d.lease)
	handle("POST /v1/leases/renew", d.renew)
	handle("POST /v1/leases/check", d.check)
	handle("POST /v1/leases/release", d.release)
	handle("GET /v1/locks", d.list)
	handle("POST /v1/locks/look", d.look)
	handle("GET /v1/locks/{name}", d.show)
	handle("GET /v1/locks/{name}/history", d.history)
	handle("POST /v1/locks/{name}/break", d.breakLock)
	handle("POST /v1/locks/{name}/hold", d.personHold)
	handle("POST /v1/locks/{name}/hold/release", d.personRelease)
	handle("GET /v1/once", d.onceList)
	handle("POST /v1/once/{key}", d.onceBegin)
	handle("GET /v1/once/{key}", d.onceStatus)
	handle("DELETE /v1/once/{key}", d.onceForget)
	handle("PUT /v1/once/{key}/result", d.onceResult)
	handle("POST /v1/once/{key}/fail", d.onceFail)
	handle("GET /v1/onetime", d.counts)
	handle("POST /v1/onetime", d.issue)
	handle("POST /v1/onetime/redeem", d.redeem)
	handle("POST /v1/onetime/revoke", d.revoke)
	deaf := func() {}
	if teller := h.Features.LossTeller; teller != nil {
		deaf = teller.OnLoss(d.holds.told)
	}
	return func() {
		deaf()
		d.holds.leave()
	}
}
