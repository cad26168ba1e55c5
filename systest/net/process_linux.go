package net

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds waits on a loaded machine.
const patience = 30 * time.Second

// A Process runs on a host. It ends with the host.
type Process struct {
	t      testing.TB
	cmd    *exec.Cmd
	output string        // file
	done   chan struct{} // closed when the process has ended and ended is set
	ended  time.Time
}

// Start starts a program on the host. It fails the test if that cannot be done.
func (h *Host) Start(t testing.TB, program string, args ...string) *Process {
	t.Helper()
	return h.StartEnv(t, nil, program, args...)
}

// StartEnv is Start with more environment variables, each as NAME=value.
func (h *Host) StartEnv(t testing.TB, env []string, program string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	// A file, not a pipe: the process may end before its children.
	out, err := os.CreateTemp(t.TempDir(), "output")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p.cmd.Stdout, p.cmd.Stderr, p.output = out, out, out.Name()
	if err := h.Spawn(p.cmd); err != nil {
		t.Fatalf("net: host %s: %s: %v", h.Name, program, err)
	}
	go func() { // ends with the process
		_ = p.cmd.Wait() // its status is for the caller to judge
		p.ended = time.Now()
		close(p.done)
	}()
	return p
}

// Await waits until the process has written a text.
func (p *Process) Await(text string) *Process {
	p.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(p.Output(), text); time.Sleep(5 * time.Millisecond) {
		if p.hasEnded() || time.Now().After(end) {
			p.t.Fatalf("net: %s does not say %q: %s", p.cmd, text, p.Output())
		}
	}
	return p
}

// Output returns what the process has written so far.
func (p *Process) Output() string {
	text, err := os.ReadFile(p.output)
	if err != nil {
		p.t.Error(err)
	}
	return string(text)
}

// Signal sends the process a signal.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Wait waits for the end of the process. It returns the time of the end, and the status as a
// shell has it. It fails the test if the process does not end.
func (p *Process) Wait(bound time.Duration) (ended time.Time, status int) {
	p.t.Helper()
	ended, status, ok := p.TryWait(bound)
	if !ok {
		p.t.Fatalf("net: %s does not end within %s: %s", p.cmd, bound, p.Output())
	}
	return ended, status
}

// TryWait is Wait for any goroutine: it reports whether the process has ended.
func (p *Process) TryWait(bound time.Duration) (ended time.Time, status int, ok bool) {
	select {
	case <-p.done:
	case <-time.After(bound):
		return time.Now(), -1, false
	}
	if ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		return p.ended, 128 + int(ws.Signal()), true
	}
	return p.ended, p.cmd.ProcessState.ExitCode(), true
}

func (p *Process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
