package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestPatternIsKnownOutside checks that handlers around the server's handler see the pattern of the
// request's route.
func TestPatternIsKnownOutside(t *testing.T) {
	s, err := server.New(mem.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/nowhere", nil)
	s.ServeHTTP(httptest.NewRecorder(), r)
	if r.Pattern != "/" {
		t.Errorf("pattern %q, want that of what is not found", r.Pattern)
	}
}
