package server

import (
	"net/http"
	"strings"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// methods are those that there may be at a path.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch}

// nothing answers what no door is for: by 405 if other methods are allowed at the path.
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
		return &door.Refusal{Status: http.StatusNotFound, Code: "not-found", Detail: "there is nothing at this path"}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return &door.Refusal{
		Status: http.StatusMethodNotAllowed, Code: "method-not-allowed",
		Detail: "this path has " + strings.Join(allowed, ", ") + " only",
	}
}

// plainPath reports whether a path is one that http.ServeMux takes as it is. It sends a
// client elsewhere because of any other, by a page of HTML.
func plainPath(r *http.Request) bool {
	path := r.URL.EscapedPath()
	return strings.HasPrefix(path, "/") && !strings.Contains(path, "//") && !strings.Contains(path+"/", "/./") && !strings.Contains(path+"/", "/../")
}
