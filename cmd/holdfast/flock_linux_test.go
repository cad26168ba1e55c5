package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestFlockAgrees runs the same scripts with flock itself, to check that holdfast is expected to do
// what flock does.
func TestFlockAgrees(t *testing.T) {
	testsvc.Need(t, "flock", "util-linux", "util-linux")
	for _, c := range flockCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			flockCase(t, "flock", c.script, c.want)
		})
	}
}

// TestFlockIsAnotherRegime checks that flock and holdfast do not exclude each other under one name,
// and that flock around holdfast excludes users of either, as docs/comparison.md describes.
func TestFlockIsAnotherRegime(t *testing.T) {
	t.Parallel()
	dir, env := t.TempDir(), append(os.Environ(), "HOLDFAST_STORE="+sqlite(t))
	sh := func(script string) string {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	for _, c := range []struct{ holder, wants, status string }{
		{"flock job", "holdfast run -n job", "0"},              // before the change and after it: both get the lock
		{"flock job", "flock -n job holdfast run -n job", "1"}, // in the first roll-out, flock refuses
		{"flock job holdfast run job", "flock -n job", "1"},
		{"flock job holdfast run job", "holdfast run -n job", "75"}, // in the second, holdfast refuses
		{"holdfast run job", "flock -n job holdfast run -n job", "75"},
	} {
		got := sh(`mkfifo go; ` + c.holder + ` sh -c 'touch has; read x <go' & until test -e has; do sleep 0.02; done
			` + c.wants + ` true 2>/dev/null; echo $?; echo >go; wait; rm has go`)
		if got != c.status+"\n" {
			t.Errorf("%s, while %s has it: status %s, want %s", c.wants, c.holder, got, c.status)
		}
	}
}
