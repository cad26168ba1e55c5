// Package eventdoor has the stream of events.
package eventdoor

import (
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// Routes adds what is below /v1/events.
func Routes(mux *http.ServeMux, h *door.House) {
}
