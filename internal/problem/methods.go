package problem

import (
	"net/http"
	"strings"
)

// Methods returns the methods for which mux has a pattern at the path of r.
func Methods(mux *http.ServeMux, r *http.Request) (allowed []string) {
	if !PlainPath(r) {
		return nil
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		other := *r
		other.Method = method
		if _, pattern := mux.Handler(&other); strings.HasPrefix(pattern, method) {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// PlainPath reports whether http.ServeMux accepts the path of r unchanged. For any other path it
// would redirect the client, by an HTML page, to a URL that is wrong below a prefix.
func PlainPath(r *http.Request) bool {
	path := r.URL.EscapedPath()
	return strings.HasPrefix(path, "/") && !strings.Contains(path, "//") && !strings.Contains(path+"/", "/./") && !strings.Contains(path+"/", "/../")
}
