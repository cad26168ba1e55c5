// Package leasedoor answers requests to acquire, renew, check, downgrade, release and break
// leases. It also serves people's holds, which are leases without renewal.
package leasedoor

import (
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
)

// leases has the handlers.
type leases struct {
	*lease.Store
	stream door.Func // answers a request for a lease that a stream holds
}

// Routes adds the routes of leases.
func Routes(mux *http.ServeMux, s *lease.Store, stream door.Func) {
	d := &leases{Store: s, stream: stream}
	mux.Handle("POST /v1/leases", s.House.For(caller.Acquire, d.acquire))
	mux.Handle("POST /v1/leases/renew", s.House.ForStore(caller.Acquire|caller.Once, door.Reading(d.renew)))
	mux.Handle("POST /v1/leases/check", s.House.ForStore(caller.Acquire|caller.Once, door.Reading(d.check)))
	mux.Handle("POST /v1/leases/downgrade", s.House.ForStore(caller.Acquire, door.Reading(d.downgrade)))
	mux.Handle("POST /v1/leases/release", s.House.ForStore(caller.Acquire|caller.Once, door.Reading(d.release)))
	mux.Handle("POST /v1/locks/{name}/break", s.House.ForName("name", caller.Break, d.breakLock))
	mux.Handle("POST /v1/locks/{name}/hold", s.House.ForName("name", caller.Acquire, d.personHold))
	mux.Handle("POST /v1/locks/{name}/hold/release", s.House.ForStore(caller.Acquire|caller.Break, d.personRelease))
}

// acquire answers POST /v1/leases.
func (d *leases) acquire(w http.ResponseWriter, r *door.Request) error {
	if r.URL.Query().Has("hold") {
		return d.stream(w, r)
	}
	return d.Serve(w, r)
}
