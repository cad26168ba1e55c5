package exchange_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/exchange"
)

func TestRecorded(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(exchange.Directory, dir)
	server := httptest.NewServer(exchange.Recorded(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, _ := io.ReadAll(r.Body)
		w.Header().Set("Fencing-Token", "7")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(said)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("a recorded answer cannot be flushed: %v", err)
		}
		_, _ = io.WriteString(w, "two\n")
		if r.URL.Query().Has("cut") {
			panic(http.ErrAbortHandler)
		}
	})))
	for _, url := range []string{"/v1/x?hold=1", "/v1/x?cut"} {
		req, err := http.NewRequest(http.MethodPost, server.URL+url, strings.NewReader("one\n"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer secret")
		req.Header.Set("Idempotency-Key", "k")
		if resp, err := server.Client().Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
	server.Close()

	got, err := exchange.Read(dir)
	if err != nil || len(got) != 2 {
		t.Fatalf("read %d exchanges, %v; want 2", len(got), err)
	}
	for _, e := range got {
		if e.Test != t.Name() || e.Method != http.MethodPost || e.Status != http.StatusCreated || string(e.Request.Body) != "one\n" || string(e.Response.Body) != "one\ntwo\n" {
			t.Errorf("recorded %+v", e)
		}
		if e.Request.Header.Get("Authorization") != "" || e.Request.Header.Get("Idempotency-Key") != "k" || e.Response.Header.Get("Fencing-Token") != "7" {
			t.Errorf("recorded the headers %v and %v", e.Request.Header, e.Response.Header)
		}
		if e.Broken != strings.HasSuffix(e.URL, "cut") {
			t.Errorf("%s: broken is %t", e.URL, e.Broken)
		}
	}
}

func TestRecordsNothing(t *testing.T) {
	t.Setenv(exchange.Directory, "")
	h := http.NewServeMux()
	if exchange.Recorded(t, h) != http.Handler(h) {
		t.Error("a handler is wrapped though nothing is recorded")
	}
}
