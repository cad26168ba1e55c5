//go:build unix

package holdfasttest_test

import (
	"net"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/holdfasttest"
	"github.com/holdfast-locks/holdfast/internal/faketest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestRedis checks that each call starts its own server, which ends with the test.
func TestRedis(t *testing.T) {
	var addresses []string
	texts := faketest.Run(t, func(t testing.TB) {
		for range 2 {
			address := strings.TrimPrefix(holdfasttest.Redis(t), "redis://")
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if pong, err := testsvc.Ask(conn, "PING"); pong != "PONG" || err != nil {
				t.Errorf("PING: %s, %v", pong, err)
			}
			addresses = append(addresses, address)
		}
	})
	if texts != nil || len(addresses) != 2 || addresses[0] == addresses[1] {
		t.Errorf("%q, servers %q", texts, addresses)
	}
	for _, address := range addresses {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			t.Errorf("the server on %s has outlived its test", address)
		}
	}
}

// TestRedisIsMissing checks that one line reports what to install.
func TestRedisIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	texts := faketest.Run(t, func(t testing.TB) { holdfasttest.Redis(t) })
	if len(texts) != 1 || !strings.Contains(texts[0], "apt-get install redis-server") || strings.Contains(texts[0], "\n") {
		t.Errorf("%q, want one line that says what to install", texts)
	}
}
