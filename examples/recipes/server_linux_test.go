package recipes

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestServerUnits checks that systemd accepts the units of the server.
func TestServerUnits(t *testing.T) {
	f := newFleet(t)
	dir := t.TempDir()
	service := replaced(t, read(t, "systemd/holdfast.service"), "/usr/local/bin", f.bin)
	f.install(t, filepath.Join(dir, "holdfast.service"), replaced(t, service, "User=holdfast", "User=root"))
	f.install(t, filepath.Join(dir, "holdfast.socket"), read(t, "systemd/holdfast.socket"))
	verify := testsvc.Need(t, "systemd-analyze", "systemd", "systemd")
	for _, name := range []string{"holdfast.service", "holdfast.socket"} {
		cmd := exec.CommandContext(t.Context(), verify, "verify", "--man=no", name)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), name+":") {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
	}
}
