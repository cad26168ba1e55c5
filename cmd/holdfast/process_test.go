//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// patience bounds every wait of a test for something that must happen soon.
const patience = 30 * time.Second

// A process is one run of holdfast.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr string // files
	done           chan struct{}
	ended          time.Time // valid once done is closed
}

// start starts holdfast with a store and arguments. If it still runs at the end of the test, it is
// killed.
func start(t *testing.T, store string, args ...string) *process {
	t.Helper()
	return startProgram(t, store, "holdfast", func(*process) []string { return args })
}

// startProgram starts a program that runs or becomes holdfast, with arguments
// that may depend on the files of the process.
func startProgram(t *testing.T, store, program string, args func(*process) []string) *process {
	t.Helper()
	return startWith(t, store, program, args, nil)
}

// startWith is startProgram for a command that prepare, if it is not nil, changes before the start.
func startWith(t *testing.T, store, program string, args func(*process) []string, prepare func(*exec.Cmd)) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{
		t: t, done: make(chan struct{}),
		stdout: filepath.Join(dir, "stdout"), stderr: filepath.Join(dir, "stderr"),
	}
	p.cmd = exec.Command(program, args(p)...)
	p.cmd.Env = append(os.Environ(), "HOLDFAST_STORE="+store)
	// Files, not pipes: with pipes, Wait would also wait for processes that holdfast left behind.
	p.cmd.Stdout, p.cmd.Stderr = create(t, p.stdout), create(t, p.stderr)
	if prepare != nil {
		prepare(p.cmd)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process; the cleanup waits for it
		_ = p.cmd.Wait() // its status is read from ProcessState
		p.ended = time.Now()
		close(p.done)
	}()
	t.Cleanup(func() {
		select {
		case <-p.done:
		default:
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		if t.Failed() {
			t.Logf("%s:\nstdout: %sstderr: %s", strings.Join(p.cmd.Args, " "), read(t, p.stdout), read(t, p.stderr))
		}
	})
	return p
}

func create(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// wait waits for the end and returns the exit status.
func (p *process) wait() int {
	p.t.Helper()
	status := p.status()
	if status < 0 {
		p.t.Fatalf("holdfast %s does not end", strings.Join(p.cmd.Args[1:], " "))
	}
	return status
}

// status waits for the end and returns the exit status, 128 + n if signal n
// ended holdfast, or -1 if it does not end. Any goroutine may call it.
func (p *process) status() int {
	select {
	case <-p.done:
	case <-time.After(patience):
		return -1
	}
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// want fails the test unless holdfast ends with status.
func (p *process) want(status int) {
	p.t.Helper()
	if got := p.wait(); got != status {
		p.t.Errorf("holdfast %s: exit status %d, want %d\n%s", strings.Join(p.cmd.Args[1:], " "), got, status, read(p.t, p.stderr))
	}
}

// signal sends a signal to holdfast alone.
func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// awaitStderr waits for a text in the messages.
func (p *process) awaitStderr(text string) {
	p.t.Helper()
	eventually(p.t, "stderr has "+text, func() bool { return strings.Contains(read(p.t, p.stderr), text) })
}

// run runs holdfast to its end and returns the status and both outputs.
func run(t *testing.T, store string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	p := start(t, store, args...)
	status = p.wait()
	return status, read(t, p.stdout), read(t, p.stderr)
}

// wantRun fails the test unless holdfast ends with status, and returns what it
// wrote to stderr.
func wantRun(t *testing.T, status int, store string, args ...string) (stderr string) {
	t.Helper()
	got, _, stderr := run(t, store, args...)
	if got != status {
		t.Errorf("holdfast %s: exit status %d, want %d\n%s", strings.Join(args, " "), got, status, stderr)
	}
	return stderr
}

// A shown lock is the output of "show --json".
type shown struct {
	Name    string
	Held    bool
	Mode    string
	Limit   int
	Holders []struct {
		Host         string
		PID          int
		Permits      int
		FencingToken uint64 `json:"fencing_token"`
		ExpiresInMS  *int64 `json:"expires_in_ms"`
		Released     bool
		Foreign      bool
	}
	QueueLength int `json:"queue_length"`
	Queue       []struct {
		PID         int
		Mode        string
		Permits     int
		Reason      string
		WaitingMS   int64 `json:"waiting_ms"`
		ExpiresInMS int64 `json:"expires_in_ms"`
	}
	LastToken uint64 `json:"last_token"`
}

// show returns the state of a name.
func show(t *testing.T, store, name string) shown {
	t.Helper()
	status, stdout, stderr := run(t, store, "show", name, "--json")
	if status != 0 {
		t.Fatalf("show %s: status %d\n%s%s", name, status, stdout, stderr)
	}
	return decode(t, stdout)
}

func decode(t *testing.T, text string) (s shown) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return s
}

// enqueue starts holdfast, which has to wait, and returns when it is the last
// of a queue of n.
func enqueue(t *testing.T, n int, store, name string, args ...string) *process {
	t.Helper()
	p := start(t, store, append([]string{"run", "-w", "60"}, args...)...)
	eventually(t, fmt.Sprintf("%d wait for %s", n, name), func() bool {
		s := show(t, store, name)
		return s.QueueLength == n && s.Queue[n-1].PID == p.cmd.Process.Pid
	})
	return p
}

// eachStore runs a test on the embedded store, on a Redis of its own, and through a server
// whose store is such a Redis.
func eachStore(t *testing.T, test func(t *testing.T, store string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, sqlite(t))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, testsvc.Redis(t).URL)
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		test(t, serve(t, testsvc.Redis(t).URL).urls[0])
	})
}

// sqlite returns the URL of a new embedded store.
func sqlite(t *testing.T) string {
	t.Helper()
	return "sqlite://" + filepath.Join(t.TempDir(), "locks.db")
}

// hold runs holdfast with a command that lasts until finish, and returns when
// the command runs.
func hold(t *testing.T, store, name string, flags ...string) *holder {
	t.Helper()
	dir := t.TempDir()
	h := &holder{started: filepath.Join(dir, "started"), finished: filepath.Join(dir, "finished")}
	script := "touch " + h.started + "; until test -e " + h.finished + "; do sleep 0.02; done"
	args := append(append([]string{"run"}, flags...), name, "--", "sh", "-c", script)
	h.process = start(t, store, args...)
	eventually(t, "the command runs", func() bool {
		select {
		case <-h.done:
			t.Fatalf("holdfast ended with status %d: %s", h.wait(), read(t, h.stderr))
		default:
		}
		_, err := os.Stat(h.started)
		return err == nil
	})
	return h
}

// A holder is a process whose command runs until finish.
type holder struct {
	*process
	started, finished string // files
}

// finish lets the command end with status 0.
func (h *holder) finish() {
	h.t.Helper()
	touch(h.t, h.finished)
}

func touch(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
