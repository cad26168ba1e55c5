// Package driverdoor has the requests of engines: one for each method of driver.Engine and its optional interfaces, and a stream of news for each client.
package driverdoor

import (
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// Routes adds what is below /v1/driver.
func Routes(mux *http.ServeMux, h *door.House) {
}
