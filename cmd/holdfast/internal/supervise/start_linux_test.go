package supervise

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPrepareDoesNotWait checks that Prepare returns while nothing can be forked, so that its
// caller can open the store. Close ends a warden that is not needed.
func TestPrepareDoesNotWait(t *testing.T) {
	syscall.ForkLock.Lock() // like another goroutine that forks
	prepared := make(chan *Start)
	go func() { prepared <- Prepare(nil) }() // ends when the start is taken below
	var s *Start
	select {
	case s = <-prepared:
		syscall.ForkLock.Unlock()
	case <-time.After(10 * time.Second):
		t.Error("it waits for the fork")
		syscall.ForkLock.Unlock()
		s = <-prepared
	}
	s.Close()
	if s.err != nil {
		t.Fatal(s.err)
	}
	var ws unix.WaitStatus
	if pid, err := unix.Wait4(s.warden.pid, &ws, 0, nil); pid != s.warden.pid || err != nil || !ws.Exited() || ws.ExitStatus() != 0 {
		t.Errorf("the warden ends with %v (%d, %v)", ws, pid, err)
	}
}

// TestWardenStartsNoWarden checks that a warden cannot start a warden. Otherwise a program that
// overlooked its own role would start another one like itself, without end.
func TestWardenStartsNoWarden(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	os.Args = []string{"holdfast", wardenCommand, "3", "4"}
	s := Prepare(nil)
	s.Close()
	if s.err == nil {
		t.Error("it has started one")
	}
}

// TestIsChildless checks that a child counts while it lives, while it is stopped and until it is
// reaped, and that it can still be waited for.
func TestIsChildless(t *testing.T) {
	if !isChildless() {
		t.Fatal("there is a child before there is one")
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, child := range []struct {
		is   string
		make func() error
	}{
		{"lives", func() error { return nil }},
		{"was stopped", func() error { return cmd.Process.Signal(syscall.SIGSTOP) }},
		{"was killed", cmd.Process.Kill},
	} {
		if err := child.make(); err != nil {
			t.Fatal(err)
		}
		if isChildless() {
			t.Errorf("a child that %s is not seen", child.is)
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it has ended with %v", err)
	}
	if !isChildless() {
		t.Error("a child that was reaped is seen")
	}
}
