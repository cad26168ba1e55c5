//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestTimeToCleanUp freezes the store under a command that takes a moment to clean up. The command
// must get TERM early enough.
func TestTimeToCleanUp(t *testing.T) {
	t.Parallel()
	server, file := testsvc.Redis(t), filepath.Join(t.TempDir(), "file")
	const ttl = 4 * time.Second // so a second between TERM and KILL
	p := start(t, server.URL, "run", "--ttl", ttl.String(), "job", "--", "sh", "-c",
		"trap 'sleep 0.4; touch "+file+"-clean; exit' TERM; touch "+file+"; while :; do sleep 0.02; done")
	awaitFile(t, file)
	expiry := freeze(t, server, "job", ttl)
	p.want(79)
	info, err := os.Stat(file + "-clean")
	if err != nil {
		t.Fatal("the command had no time to clean up")
	}
	if at := info.ModTime(); !at.Before(expiry) {
		t.Errorf("it was clean %s after the expiry", at.Sub(expiry))
	}
}

// TestLeftoversAreKilledInTime freezes the store, and sends TERM just before the command would be
// killed for the loss. A process that the command leaves behind must then not live for all of
// --kill-after, and no longer than the lock.
func TestLeftoversAreKilledInTime(t *testing.T) {
	t.Parallel()
	server, file := testsvc.Redis(t), filepath.Join(t.TempDir(), "marks")
	const ttl = 4 * time.Second
	p := start(t, server.URL, "run", "--ttl", ttl.String(), "--on-lost", "kill", "--kill-after", "2s", "job", "--",
		"sh", "-c", "workload -deaf "+file+" & wait")
	pids := awaitMarks(t, file, 1)
	expiry := freeze(t, server, "job", ttl)
	time.Sleep(time.Until(expiry.Add(-ttl / 4)))
	p.signal(syscall.SIGTERM)
	p.wait() // the command's own status, or 79
	wantGone(t, pids)
	// The process would also be killed at the end of the lease, but only just before the expiry.
	// The margin distinguishes the two.
	if end := last(t, file).at; end.After(expiry.Add(-ttl / 20)) {
		t.Errorf("a process was gone only %s before the expiry", expiry.Sub(end))
	}
}

// TestNobodyReads checks that holdfast guards the lock even if its messages and events go to a full
// pipe that no process reads.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	server, file := testsvc.Redis(t), filepath.Join(t.TempDir(), "marks")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	fill(t, w)
	const ttl = 3 * time.Second
	cmd := exec.Command("holdfast", "run", "-v", "--status-fd", "3", "--ttl", ttl.String(), "job", "--", "workload", "-deaf", file)
	cmd.Env = append(os.Environ(), "HOLDFAST_STORE="+server.URL)
	cmd.Stderr, cmd.ExtraFiles = w, []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends with the process; the cleanup waits for it
		_ = cmd.Wait() // its status is read from ProcessState
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	pids := awaitMarks(t, file, 1)
	expiry := freeze(t, server, "job", ttl)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("holdfast waits for its reader")
	}
	if status := cmd.ProcessState.ExitCode(); status != 79 {
		t.Errorf("exit status %d, want 79", status)
	}
	wantGone(t, pids)
	if end := last(t, file).at; !end.Before(expiry) {
		t.Errorf("the command outlived its lock by %s", end.Sub(expiry))
	}
}

// fill fills a pipe, and leaves it blocking.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	if err := w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	page := make([]byte, 4096)
	for err := error(nil); err == nil; {
		_, err = w.Write(page)
	}
	for err := error(nil); err == nil; {
		_, err = w.Write(page[:1])
	}
	_ = w.Fd() // has the side effect of making the file blocking
}
