//go:build web

package webtest

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// serveHandler serves a handler on a free port, and returns its URL.
func serveHandler(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}
