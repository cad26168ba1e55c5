package recipes

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestSystemd checks that systemd accepts the units. If the timer fires on two hosts at once, they
// make one report, and the other host reports no failure.
func TestSystemd(t *testing.T) {
	f := newFleet(t)
	f.job(t, "report", "sleep .3")
	unit := replaced(t, read(t, "systemd/report.service"), "/usr/local/bin", f.bin)
	dir := t.TempDir()
	f.install(t, filepath.Join(dir, "report.service"), replaced(t, unit, "User=app", "User=root"))
	f.install(t, filepath.Join(dir, "report.timer"), read(t, "systemd/report.timer"))
	verify := testsvc.Need(t, "systemd-analyze", "systemd", "systemd")
	for _, name := range []string{"report.service", "report.timer"} {
		cmd := exec.Command(verify, "verify", "--man=no", name)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), name+":") {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
	}
	start := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(unit)
	if got, want := f.onHosts(t, 2, nil, strings.Fields(start[1])...), map[int]int{0: 1, 75: 1}; !maps.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
	if !strings.Contains(unit, "\nSuccessExitStatus=75\n") {
		t.Error("status 75 is a failure")
	}
	if got := f.lines(t); got != "begin end" {
		t.Errorf("%s, want one report", got)
	}
}
