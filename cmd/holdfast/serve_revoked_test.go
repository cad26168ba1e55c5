//go:build unix

package main

import (
	"bufio"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestServeRevokes checks that the streams of a caller end within a minute after its entry was
// removed from the file.
func TestServeRevokes(t *testing.T) {
	testsvc.Long(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "callers.json")
	status, token, stderr := run(t, "memory:", "serve", "add-caller", file, "ann", "--prefix", "", "--right", "read", "--right", "acquire")
	if status != 0 {
		t.Fatalf("%d %s", status, stderr)
	}
	s := serve(t, sqlite(t)+"?history=1", "--callers", file)
	type end struct {
		what, last string
		at         time.Time
	}
	ends := make(chan end, 2)
	follow := func(what, method, path, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.urls[0]+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "0123456789-0123456789")
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v %v", what, answer, err)
		}
		go func() {
			defer func() { _ = answer.Body.Close() }()
			last := ""
			for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
				last = lines.Text()
			}
			ends <- end{what, last, time.Now()}
		}()
	}
	follow("the lock", "POST", "/v1/leases?hold=1", `{"name":"job","ttl_ms":30000}`)
	follow("the events", "GET", "/v1/events", "")
	select {
	case e := <-ends:
		t.Fatalf("%s ended by itself: %s", e.what, e.last)
	case <-time.After(2 * time.Second):
	}
	revoked := time.Now()
	write(t, file, `{"callers":[]}`)
	for range 2 {
		select {
		case e := <-ends:
			t.Logf("%s: %s after the entry was taken out: %s", e.what, e.at.Sub(revoked).Round(time.Second), e.last)
			if e.what == "the lock" && !strings.Contains(e.last, `"event":"moved"`) {
				t.Errorf("its last line is %s", e.last)
			}
		case <-time.After(time.Minute + patience):
			t.Fatal("a stream goes on a minute later")
		}
	}
	s.awaitStderr("revoked")
}
