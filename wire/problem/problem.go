// Package problem writes the bodies of refusals over HTTP.
package problem

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/holdfast-locks/holdfast/wire"
)

// Write answers with p. It sets the title to what the status says, and the type
// to "about:blank" if it is empty.
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
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs no answer
}
