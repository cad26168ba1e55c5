// Package problem writes refusals over HTTP, and finds the methods that a path allows.
package problem

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/holdfast-locks/holdfast/wire"
)

// Write writes p as the response. It replaces an empty title by the text of the status, and an
// empty type by "about:blank".
func Write(w http.ResponseWriter, p wire.Problem) {
	p.Title = http.StatusText(p.Status)
	if p.Type == "" {
		p.Type = "about:blank"
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("problem: a problem of strings and numbers: %v", err))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // an error means that the client is gone
}
