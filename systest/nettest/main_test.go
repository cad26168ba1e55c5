//go:build soaknet && linux

package nettest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// jobs are the jobs of the crews of this package.
var jobs = traffic.Jobs{
	string(takeTurns): crewJob(takeTurns),
	string(heedless):  crewJob(heedless),
	string(holdAll):   crewJob(holdAll),
}

// TestMain runs the tests with a new build of holdfast in the PATH, or the job if a test started
// this process.
func TestMain(m *testing.M) {
	if jobs.Main() {
		return
	}
	if len(os.Args) == 3 && os.Args[1] == marker {
		writeMarks(os.Args[2])
		return
	}
	os.Exit(withCommand(m))
}

func withCommand(m *testing.M) int {
	dir, err := os.MkdirTemp("", "holdfast-nettest")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "holdfast"), "../../cmd/holdfast").CombinedOutput(); err != nil {
		return failed(fmt.Errorf("go build: %w\n%s", err, out))
	}
	os.Unsetenv("HOLDFAST_STORE") // only the tests choose the store
	os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return m.Run()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
