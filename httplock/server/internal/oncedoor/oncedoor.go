// Package oncedoor answers requests about do-once work and one-time tokens.
package oncedoor

import (
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/onetime"
)

// desk has the handlers.
type desk struct {
	*lease.Store
	tokens   *onetime.Service
	noTokens error // why tokens is nil
	counted  tokenCounts
}

// Routes adds the routes of do-once work and of one-time tokens.
func Routes(mux *http.ServeMux, s *lease.Store) {
	d := &desk{Store: s}
	d.openTokens()
	mux.Handle("GET /v1/once", s.House.For(caller.Once|caller.Read, d.onceList))
	mux.Handle("POST /v1/once/{key}", s.House.ForName("key", caller.Once, d.onceBegin))
	mux.Handle("GET /v1/once/{key}", d.recorded(d.onceStatus))
	mux.Handle("DELETE /v1/once/{key}", d.recorded(d.onceForget))
	mux.Handle("PUT /v1/once/{key}/result", d.recorded(d.onceResult))
	mux.Handle("POST /v1/once/{key}/fail", d.recorded(d.onceFail))
	mux.Handle("GET /v1/onetime", s.House.Handle(d.counts))
	mux.Handle("POST /v1/onetime", s.House.ForStore(caller.OneTime, door.Reading(d.issue)))
	mux.Handle("POST /v1/onetime/redeem", s.House.ForStore(caller.OneTime, door.Reading(d.redeem)))
	mux.Handle("POST /v1/onetime/revoke", s.House.ForStore(caller.OneTime, door.Reading(d.revoke)))
}
