package member_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/redislock/member"
)

// TestOpen checks that the options of a URL are checked at once, and that the server may be down.
func TestOpen(t *testing.T) {
	server := testsvc.Redis(t)
	for _, url := range []string{"", "redis:", "http://localhost", "redis://localhost?none=1", server.URL + "?token_memory=1h"} {
		if m, err := member.Open(url); m != nil || !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("Open(%q): %v, want ErrInvalid", url, err)
		}
	}
	for url, want := range map[string]string{
		strings.Replace(server.URL, "redis://", "redis://:p@ss@", 1): server.Addr,
		"rediss://user:pw@redis-1:6379/2?prefix=a:":                  "redis-1:6379",
		"redis+unix:///run/redis.sock":                               "/run/redis.sock",
	} {
		m, err := member.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.(fmt.Stringer).String(); got != want {
			t.Errorf("%s is called %q, want %q", url, got, want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	m, err := member.Open(server.URL + "?prefix=a:")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := m.Inspect(ctx, "a"); err != nil {
		t.Error(err)
	}
}
