package testsvc

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// dieWithParent makes the kernel kill the child when the test process dies,
// however it dies.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// freeze sends SIGSTOP and returns when every thread has stopped: the signal
// alone leaves a running process time for one more answer.
func (p *process) freeze() error {
	if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
		if err != nil {
			return err
		}
		// The state follows the program's name, which is in parentheses.
		_, rest, _ := strings.Cut(string(stat), ") ")
		if strings.HasPrefix(rest, "T") {
			return nil
		}
	}
	return fmt.Errorf("process %d does not stop", p.pid)
}
