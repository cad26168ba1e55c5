//go:build unix

package recipes

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// A fleet is several hosts that share a store, and a journal of their jobs.
type fleet struct {
	bin, store, journal string
}

// newFleet builds the program holdfast and starts a server.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	dir := t.TempDir()
	f := &fleet{bin: filepath.Join(dir, "bin"), store: testsvc.Redis(t).URL, journal: filepath.Join(dir, "journal")}
	if out, err := exec.Command("go", "build", "-o", f.bin+"/", "../../cmd/holdfast").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	f.install(t, f.journal, "")
	return f
}

// install creates a file. If name has no directory, the file is a program on the PATH of all hosts.
func (f *fleet) install(t *testing.T, name, text string) {
	t.Helper()
	if filepath.Base(name) == name {
		name = filepath.Join(f.bin, name)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o700); err != nil {
		t.Fatal(err)
	}
}

// job installs a program that writes "begin" and "end" to the journal, and runs between in between.
// The journal then shows whether jobs overlap.
func (f *fleet) job(t *testing.T, name, between string) {
	t.Helper()
	f.install(t, name, "#!/bin/sh\necho begin >>"+f.journal+"\n"+between+"\necho end >>"+f.journal+"\n")
}

// lines returns the lines of the journal.
func (f *fleet) lines(t *testing.T) string {
	t.Helper()
	return strings.Join(strings.Fields(read(t, f.journal)), " ")
}

// command returns a command on its own host, with another home and only the given environment.
func (f *fleet) command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	if args[0] == "holdfast" {
		cmd.Path, cmd.Err = filepath.Join(f.bin, "holdfast"), nil
	}
	home := t.TempDir()
	cmd.Dir = home
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + f.bin + ":" + os.Getenv("PATH"), "HOLDFAST_STORE=" + f.store}, env...)
	return cmd
}

// onHosts runs the same command on n hosts at once, and counts the exit statuses.
func (f *fleet) onHosts(t *testing.T, n int, env []string, args ...string) (statuses map[int]int) {
	t.Helper()
	statuses = map[int]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		cmd := f.command(t, env, args...)
		all.Go(func() {
			out, err := cmd.CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			statuses[status(err)]++
			if len(out) > 0 {
				t.Logf("%s", out)
			}
		})
	}
	all.Wait()
	return statuses
}

// status returns the exit status of a command, or -1.
func status(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}
