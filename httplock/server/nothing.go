package server

import (
	"net/http"
	"strings"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// methods are those that there may be at a path.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch}

// nothing answers requests without a route: by 405 if the path has other methods.
func (s *Server) nothing(w http.ResponseWriter, r *door.Request) error {
	var allowed []string
	if plainPath(r.Request) {
		for _, method := range methods {
			other := *r.Request
			other.Method = method
			if _, pattern := s.mux.Handler(&other); pattern != "/" {
				allowed = append(allowed, method)
			}
		}
	}
	if len(allowed) == 0 {
		return &door.Refusal{Status: http.StatusNotFound, Code: "not-found", Detail: "there is nothing at this path" + hint(r.URL.Path)}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return &door.Refusal{
		Status: http.StatusMethodNotAllowed, Code: "method-not-allowed",
		Detail: "this path has " + strings.Join(allowed, ", ") + " only",
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

// plainPath reports whether http.ServeMux accepts a path unchanged. For any other it
// redirects the client, by a page of HTML.
func plainPath(r *http.Request) bool {
	path := r.URL.EscapedPath()
	return strings.HasPrefix(path, "/") && !strings.Contains(path, "//") && !strings.Contains(path+"/", "/./") && !strings.Contains(path+"/", "/../")
}
