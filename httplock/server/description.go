package server

import (
	_ "embed"
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

//go:embed openapi.json
var description []byte

// describe answers GET /openapi.json.
func describe(w http.ResponseWriter, _ *door.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description) // a caller that is gone needs no answer
	return nil
}
