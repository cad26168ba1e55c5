package httplock_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/httplock/server"
	"github.com/holdfast-locks/holdfast/internal/exchange"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestServerOfAServer checks that a server whose store is another server, which keeps no secret for
// it, grants leases. It logs once that a retry at another server is not a repeat.
func TestServerOfAServer(t *testing.T) {
	_, e := served(t, mem.New(nil))
	var log bytes.Buffer
	s, err := server.New(e, &server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	handler := exchange.Recorded(t, s)
	post := func(path, key, body string, status int) string {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != status {
			t.Fatalf("%s: %d %s, want %d", path, w.Code, w.Body, status)
		}
		return w.Body.String()
	}
	const body, key, other = `{"name":"a"}`, "0123456789abcdef", "fedcba9876543210"
	id := func(answer string) string {
		_, rest, _ := strings.Cut(answer, `"lease_id":"`)
		return rest[:32]
	}
	first := id(post("/v1/leases", key, body, http.StatusCreated))
	if again := id(post("/v1/leases", key, body, http.StatusOK)); again != first {
		t.Error("a retry at the same server is another lease")
	}
	post("/v1/leases/release", key, body, http.StatusNoContent)
	post("/v1/leases", other, body, http.StatusCreated)
	if n := strings.Count(log.String(), "not a repeat"); n != 1 || !strings.Contains(log.String(), "--secret-file") {
		t.Errorf("the log says %d times what is missing: %s", n, log.String())
	}
}
