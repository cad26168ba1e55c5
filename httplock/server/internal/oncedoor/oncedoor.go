// Package oncedoor answers requests about do-once work and one-time tokens.
package oncedoor

import (
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/onetime"
)

// desk is the door.
type desk struct {
	*lease.Store
	tokens   *onetime.Service
	noTokens error // why there is no such service
	counted  tokenCounts
}

// Routes adds the routes of do-once work and of one-time tokens.
func Routes(mux *http.ServeMux, s *lease.Store) {
	d := &desk{Store: s}
	d.openTokens()
	handle := func(pattern string, rights caller.Rights, f door.Func) { mux.Handle(pattern, s.House.For(rights, f)) }
	store := func(pattern string, rights caller.Rights, f door.StoreFunc) {
		mux.Handle(pattern, s.House.ForStore(rights, f))
	}
	handle("GET /v1/once", caller.Once|caller.Read, d.onceList)
	handle("POST /v1/once/{key}", caller.Once, d.onceBegin)
	store("GET /v1/once/{key}", caller.Once, d.onceStatus)
	store("DELETE /v1/once/{key}", caller.Once, d.onceForget)
	store("PUT /v1/once/{key}/result", caller.Once, d.onceResult)
	store("POST /v1/once/{key}/fail", caller.Once, d.onceFail)
	handle("GET /v1/onetime", caller.Read, d.counts)
	store("POST /v1/onetime", caller.OneTime, d.issue)
	store("POST /v1/onetime/redeem", caller.OneTime, d.redeem)
	store("POST /v1/onetime/revoke", caller.OneTime, d.revoke)
}
