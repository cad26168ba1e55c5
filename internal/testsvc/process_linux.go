package testsvc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// dieWithParent makes the kernel kill the child when the test process dies,
// however it dies.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Freeze sends a process SIGSTOP and returns when every thread has stopped: right after the signal
// the process may still send a reply.
func Freeze(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if stopped, err := allStopped(pid); stopped || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d does not stop", pid)
}

// allStopped reports whether each thread of a process is stopped.
func allStopped(pid int) (bool, error) {
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(filepath.Join(tasks, thread.Name(), "stat"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the thread has ended
		} else if err != nil {
			return false, err
		}
		// The state follows the program's name, which is in parentheses.
		if _, rest, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(rest, "T") {
			return false, nil
		}
	}
	return true, nil
}
