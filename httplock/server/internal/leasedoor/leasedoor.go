// Package leasedoor has the requests of people: leases, streams that hold them, do-once work, one-time tokens, and what is known of locks.
package leasedoor

import (
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// Routes adds what is below /v1.
func Routes(mux *http.ServeMux, h *door.House) {
}
