package dashboard

import (
	"net/http"
	"strings"
)

// Page returns a handler that has the page at its root, and passes on to api whatever is
// not one of the page's files. api is the JSON API of package httplock/server, which
// decides who may see what: the files themselves are for everybody. Beside them is
// /status.json?name=, which tells monitors how one lock stands, by what api says of it.
func Page(api http.Handler) http.Handler {
	files := pack()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := files[r.URL.Path]; f != nil {
			r.Pattern = "GET /{file}" // for whoever stands around this handler, and counts
			f.ServeHTTP(w, r)
			return
		}
		if r.URL.Path == statusPath {
			r.Pattern = "GET " + statusPath
			statusOf(api, w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// toFolder sends whoever asks for a page without the slash at its end to the page: below
// it only do the relative addresses of its files lead to them. The address is relative as
// well, to what was asked for, because nobody here knows what a proxy has cut off before it.
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
