package server

import (
	"net/http"
	"strings"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/problem"
)

// nothing answers requests without a route: with 405 if the path has other methods.
func (s *Server) nothing(_ http.ResponseWriter, r *door.Request) error {
	allowed := problem.Methods(s.mux, r.Request)
	if len(allowed) == 0 {
		return &door.Refusal{Status: http.StatusNotFound, Code: "not-found", Detail: "there is nothing at this path" + hint(r.URL.Path)}
	}
	all := strings.Join(allowed, ", ")
	return &door.Refusal{
		Status: http.StatusMethodNotAllowed, Code: "method-not-allowed", Header: http.Header{"Allow": {all}},
		Detail: "this path has " + all + " only",
	}
}

// hint explains how to write a name with a slash in a path.
func hint(path string) string {
	for _, parent := range []string{"/v1/locks/", "/v1/once/"} {
		if strings.HasPrefix(path, parent) {
			return ": a name in it is one part, with each slash as %2F; any name at all can stand in the query, as " + parent + "~?name=a%2Fb"
		}
	}
	return ""
}
