//go:build unix

package holdfasttest

import (
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// Redis starts a redis-server of the test's own, or a valkey-server, on a free port
// of 127.0.0.1, without a password and without anything on disk. It returns its URL,
// redis://host:port. The server is killed when the test ends, and on Linux even
// if the test dies. If neither program is installed the test fails with a line that
// names what to install. It needs real time: do not call it in a bubble of
// testing/synctest.
func Redis(t testing.TB) (url string) {
	t.Helper()
	return testsvc.Redis(t).URL
}
