package dashboard

import (
	"net/http"
	"strings"
	"time"
)

// patience is how long a client may take to read a file or a status.
const patience = 30 * time.Second

// Page returns a handler that has the page at its root, and passes all other requests to
// api. api is the JSON API of package httplock/server, which decides about access; the
// files themselves are public. It also answers /status.json?name= with the state of one
// lock, from api, for monitors.
func Page(api http.Handler) http.Handler {
	files := pack()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := files[r.URL.Path]
		if f != nil || r.URL.Path == statusPath {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // a test's recorder has no deadline
		}
		switch {
		case f != nil:
			r.Pattern = "GET /{file}" // for a handler around this one that counts
			f.ServeHTTP(w, r)
		case r.URL.Path == statusPath:
			r.Pattern = "GET " + statusPath
			statusOf(api, w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// toFolder redirects a request for the page without a slash at its end: the relative
// addresses of its files need the slash. The redirect is relative as well, because a proxy
// may have removed a prefix.
func toFolder(w http.ResponseWriter, r *http.Request) {
	asked, _, _ := strings.Cut(r.RequestURI, "?")
	to := "./" + asked[strings.LastIndexByte(asked, '/')+1:] + "/"
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	w.Header().Set("Location", to)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusTemporaryRedirect)
}
