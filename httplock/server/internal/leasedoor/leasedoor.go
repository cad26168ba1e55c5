// Package leasedoor answers requests about leases: take, renew, check, downgrade, release
// and break them, and people's holds, which are leases without renewal.
package leasedoor

import (
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
)

// leases is the door.
type leases struct {
	*lease.Store
	stream door.Func // answers a request for a lease that a stream holds
}

// Routes adds the routes of leases.
func Routes(mux *http.ServeMux, s *lease.Store, stream door.Func) {
	d := &leases{Store: s, stream: stream}
	handle := func(pattern string, rights caller.Rights, f door.Func) { mux.Handle(pattern, s.House.For(rights, f)) }
	store := func(pattern string, rights caller.Rights, f door.StoreFunc) {
		mux.Handle(pattern, s.House.ForStore(rights, f))
	}
	handle("POST /v1/leases", caller.Acquire, d.acquire)
	store("POST /v1/leases/renew", caller.Acquire|caller.Once, d.renew)
	store("POST /v1/leases/check", caller.Acquire|caller.Once, d.check)
	store("POST /v1/leases/downgrade", caller.Acquire, d.downgrade)
	store("POST /v1/leases/release", caller.Acquire|caller.Once, d.release)
	store("POST /v1/locks/{name}/break", caller.Break, d.breakLock)
	handle("POST /v1/locks/{name}/hold", caller.Acquire, d.personHold)
	store("POST /v1/locks/{name}/hold/release", caller.Acquire|caller.Break, d.personRelease)
}

// acquire answers POST /v1/leases.
func (d *leases) acquire(w http.ResponseWriter, r *door.Request) error {
	if r.URL.Query().Has("hold") {
		return d.stream(w, r)
	}
	return d.Serve(w, r)
}
