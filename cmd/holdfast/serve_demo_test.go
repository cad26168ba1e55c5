//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServeDemo checks that one command serves a page with a live demo fleet, without a store of
// the user, and that TERM ends it at once.
func TestServeDemo(t *testing.T) {
	t.Parallel()
	s := serve(t, "", "--demo=3")
	eventually(t, "there is something to be seen", func() bool {
		_, body := s.get("/v1/locks")
		return strings.Contains(body, `"deploy/payments"`) && strings.Contains(body, `"orders/`)
	})
	if status, body := s.get("/"); status != 200 || !strings.Contains(body, "<script") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := s.get("/v1/session"); status != 200 || !strings.Contains(body, "This is a demo") {
		t.Errorf("the page cannot say that it is a demo: %d %s", status, body)
	}
	began := time.Now()
	s.signal(syscall.SIGTERM)
	s.want(0)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s to end", took)
	}
	for _, c := range []struct {
		flags string
		says  string
		want  int
	}{
		{"--demo --store memory:", "--store", 64},
		{"--demo --store-file f", "--store", 64},
		{"--demo --callers f", "--callers", 64},
		{"--demo=-1", "--demo", 64},
		{"--demo --listen :0", "--insecure", 78},
	} {
		status, _, stderr := run(t, "", append([]string{"serve"}, strings.Fields(c.flags)...)...)
		if status != c.want || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: %d, want %d: %s", c.flags, status, c.want, stderr)
		}
	}
}
