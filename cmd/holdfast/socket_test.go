//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestValkeyAndSockets checks that the URLs of a server with its other scheme and with its socket
// name the same store, and that no output contains its password.
func TestValkeyAndSockets(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "holdfast") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	server := testsvc.Redis(t, "--requirepass", "s3cret", "--unixsocket", socket)
	urls := []string{
		"redis://:s3cret@" + server.Addr + "/1", "valkey://default:s3cret@" + server.Addr + "/1",
		"redis+unix://:s3cret@" + socket + "?db=1", "valkey+unix://default:s3cret@" + socket + "?db=1",
	}
	for _, url := range urls {
		holder := hold(t, url, "job")
		for _, other := range urls {
			wantRun(t, 75, other, "run", "-n", "job", "--", "true")
		}
		holder.finish()
		holder.wait()
		status, stdout, stderr := run(t, url, "run", "job", "--", "sh", "-c", "holdfast show job; holdfast run other -- printenv HOLDFAST_LOCK_STORE")
		if status != 0 || strings.Contains(stdout+stderr, "s3cret") || !strings.Contains(stdout, strings.SplitN(url, "://", 2)[0]) {
			t.Errorf("%s: status %d\n%s%s", url, status, stdout, stderr)
		}
		status, stdout, stderr = run(t, url, "doctor", "--json")
		if status > 1 || strings.Contains(stdout+stderr, "s3cret") {
			t.Errorf("%s: doctor: status %d\n%s%s", url, status, stdout, stderr)
		}
	}
	wantRun(t, 77, "redis+unix://"+socket, "run", "-n", "job", "--", "true")
	wantRun(t, 69, "redis+unix://:s3cret@"+socket+"x", "run", "-n", "job", "--", "true")
	wantRun(t, 78, "redis+unix://"+strings.TrimPrefix(socket, "/"), "run", "-n", "job", "--", "true")
	wantRun(t, 78, "quorum+redis+unix://"+socket, "run", "-n", "job", "--", "true")
}
