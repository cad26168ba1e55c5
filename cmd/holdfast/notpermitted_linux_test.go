package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const nobody = 65534

// TestNotPermitted starts a program in the job that becomes root's, as with sudo. A message must
// name the program, and the lock must not be released: it lasts until its expiry.
func TestNotPermitted(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("NOT TRIED: only root can make a file that may become root's")
		return
	}
	for _, verb := range []string{"run", "once"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			const ttl = 3 * time.Second
			dir := ofNobody(t)
			store, marks := "sqlite://"+filepath.Join(dir, "locks.db"), filepath.Join(dir, "marks")
			stderr := create(t, filepath.Join(dir, "stderr"))
			cmd := exec.Command(filepath.Join(dir, "holdfast"), verb, "--ttl", ttl.String(), "--kill-after", "100ms", "job", "--",
				"sh", "-c", filepath.Join(dir, "workload")+" -root -deaf "+marks+" & wait")
			cmd.Env = append(os.Environ(), "HOLDFAST_STORE="+store)
			cmd.Stderr = stderr
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pid := awaitMarks(t, marks, 1)[0]
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // its status is read from ProcessState
			if status := cmd.ProcessState.ExitCode(); status != 79 {
				t.Errorf("status %d, want 79", status)
			}
			text := read(t, stderr.Name())
			if want := fmt.Sprintf(`%s "job": not permitted to end workload (pid %d)`, verb, pid); !strings.Contains(text, want) {
				t.Errorf("it says %q, want %q", text, want)
			}
			if !alive(t, pid) {
				t.Error("root's program has ended")
			}
			wantRun(t, 75, store, "run", "-n", "job", "--", "true")
			kill(t, pid)
			wantRun(t, 0, store, "run", "-w", "20", "job", "--", "true")
		})
	}
}

// ofNobody returns a directory that the user nobody may use, with holdfast and a setuid workload.
func ofNobody(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-test") // only the owner may enter the parent of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{"holdfast": program, "workload": "/proc/self/exe"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "workload"), 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, nobody, -1); err != nil {
		t.Fatal(err)
	}
	return dir
}
