// Package header reads lists in the headers of HTTP requests.
package header

import (
	"iter"
	"net/http"
	"strings"
)

// List returns the elements of a header that is a list (RFC 9110, section 5.6.1).
func List(h http.Header, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range h.Values(name) {
			for one := range strings.SplitSeq(line, ",") {
				if !yield(strings.TrimSpace(one)) {
					return
				}
			}
		}
	}
}

// TakesGzip reports whether a client accepts gzip, by name or by "*".
func TakesGzip(h http.Header) bool {
	others := false
	for one := range List(h, "Accept-Encoding") {
		name, weight, _ := strings.Cut(one, ";")
		_, q, _ := strings.Cut(weight, "=")
		wanted := strings.Trim(strings.TrimSpace(q), "0.") != "" || q == ""
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "gzip", "x-gzip":
			return wanted
		case "*":
			others = wanted
		}
	}
	return others
}
