package supervise

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain lets this program start itself as a warden, as holdfast does.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == WardenCommand {
		orders, err1 := strconv.Atoi(os.Args[2])
		reports, err2 := strconv.Atoi(os.Args[3])
		if err1 != nil || err2 != nil {
			os.Exit(1)
		}
		Warden(orders, reports)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestPrepareDoesNotWait: while nothing can be forked, the caller goes on, and
// opens its store. A warden that is not needed ends with Close.
func TestPrepareDoesNotWait(t *testing.T) {
	syscall.ForkLock.Lock() // as somebody else who forks
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

// TestIsChildless: a child counts while it lives, while it is stopped, and until
// it is reaped; and is still there for whoever waits for it.
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
