// Package lookdoor answers requests that look at locks: lists, details, history, and the
// next change of a lock.
package lookdoor

import (
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// desk has the handlers.
type desk struct {
	house   *door.House
	watches watches
	sweeps  *sweeps
}

// Routes adds the routes of looks.
func Routes(mux *http.ServeMux, h *door.House) {
	d := &desk{house: h, sweeps: openSweeps(h)}
	d.openWatches()
	mux.Handle("GET /v1/locks", h.For(caller.Read, d.list))
	mux.Handle("POST /v1/locks/look", h.ForStore(caller.Read, d.look))
	mux.Handle("GET /v1/locks/{name}", h.ForName("name", caller.Read, d.show))
	mux.Handle("GET /v1/locks/{name}/history", h.ForName("name", caller.Read, d.history))
}
