//go:build unix

package testsvc

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// An instance is one server, which may be ended and started again. Its methods fail the test on an
// error, and must be called from the test's goroutine.
type instance struct {
	t       testing.TB
	program string
	args    []string
	ready   string         // its output contains this when it is ready
	stop    syscall.Signal // ends it as a crash would; 0 for SIGKILL
	dir     string         // for its files
	command func(program string, args ...string) *exec.Cmd
	proc    *process // nil while no process runs
}

// ownCommand returns a command that dies with the test.
func ownCommand(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = dieWithParent()
	return cmd
}

// startAttempts bounds how often a start is repeated because another process
// took the port between the choice and the bind.
const startAttempts = 10

// startOnPort starts the server on a free port, with the arguments that args returns.
func (i *instance) startOnPort(args func(port int) []string) {
	i.t.Helper()
	i.try(func() { i.args = args(freePort(i.t)) })
}

// try starts the server, after prepare. It repeats that if it fails.
func (i *instance) try(prepare func()) {
	i.t.Helper()
	var err error
	for range startAttempts {
		prepare()
		if i.proc, err = startCommand(i.command(i.program, i.args...), i.ready); err == nil {
			return
		}
	}
	i.t.Fatalf("%s does not start: %v", filepath.Base(i.program), err)
}

// Start starts the server again on the same port, with the data that it has on a disk.
func (i *instance) Start() {
	i.t.Helper()
	i.try(func() {})
}

// Restart ends the server as a crash would, if it runs, and starts it again on the same port. A
// database has its committed data, other servers have none. Connections break.
func (i *instance) Restart() {
	i.t.Helper()
	i.end()
	i.Start()
}

// Kill ends the server as a crash would, and returns when it is gone. Connections of clients are
// reset, and new ones are refused.
func (i *instance) Kill() {
	i.t.Helper()
	i.running()
	i.end()
}

// PID returns the process ID of the running server.
func (i *instance) PID() int {
	i.t.Helper()
	return i.running().pid
}

func (i *instance) running() *process {
	i.t.Helper()
	if i.proc == nil {
		i.t.Fatal("the server does not run: the test has killed it")
	}
	return i.proc
}

// end ends the server if it runs: by its signal, and by SIGKILL, which also ends a frozen
// process, if that does not end it in time.
func (i *instance) end() {
	if i.proc == nil {
		return
	}
	if i.stop != 0 {
		i.proc.signal(i.stop)
		select {
		case <-i.proc.done:
		case <-time.After(startTimeout):
		}
	}
	i.proc.kill()
	i.proc = nil
}
