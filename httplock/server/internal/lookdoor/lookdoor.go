// Package lookdoor answers requests that look at locks: lists, details, history, and the
// next change of a lock.
package lookdoor

import (
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// desk is the door.
type desk struct {
	house   *door.House
	watches watches
	sweeps  *sweeps
}

// Routes adds the routes of looks.
func Routes(mux *http.ServeMux, h *door.House) {
	d := &desk{house: h, sweeps: openSweeps(h)}
	d.openWatches()
	handle := func(pattern string, f door.Func) { mux.Handle(pattern, h.For(caller.Read, f)) }
	store := func(pattern string, f door.StoreFunc) { mux.Handle(pattern, h.ForStore(caller.Read, f)) }
	handle("GET /v1/locks", d.list)
	store("POST /v1/locks/look", d.look)
	handle("GET /v1/locks/{name}", d.show)
	store("GET /v1/locks/{name}/history", d.history)
}
