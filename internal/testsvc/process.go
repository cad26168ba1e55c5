//go:build unix

package testsvc

import (
	"bufio"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// startTimeout bounds how long a server may take to start on a loaded machine.
const startTimeout = 20 * time.Second

// A process is one running server.
type process struct {
	pid  int
	done chan struct{} // closed when the process has been reaped
}

// startCommand starts a command and returns when a line of its output contains ready. If the
// program ends or takes too long, no process is left, and the error quotes the end of the output.
func startCommand(cmd *exec.Cmd, ready string) (*process, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	p := &process{done: make(chan struct{})}
	started := make(chan error, 1)
	lines := make(chan string)
	// This goroutine ends with the process; kill waits for it. It keeps the
	// thread that started the process alive, because Linux sends the parent
	// death signal when that thread ends, not when the whole process does.
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			for s := bufio.NewScanner(out); s.Scan(); {
				lines <- s.Text()
			}
			_ = cmd.Wait() // killed: its status has no meaning
		}
		close(lines)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if err := awaitLine(lines, ready); err != nil {
		go discard(lines)
		p.kill()
		return nil, err
	}
	go discard(lines)
	return p, nil
}

// awaitLine reads lines until one contains want.
func awaitLine(lines <-chan string, want string) error {
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	var last []string
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return fmt.Errorf("it ended: %s", strings.Join(last, " / "))
			}
			if strings.Contains(line, want) {
				return nil
			}
			if last = append(last, strings.TrimSpace(line)); len(last) > 5 {
				last = last[1:]
			}
		case <-timeout.C:
			return fmt.Errorf("it is not ready after %s: %s", startTimeout, strings.Join(last, " / "))
		}
	}
}

// discard reads the rest of the output, so that the process never blocks on a
// full pipe. It ends with the process.
func discard(lines <-chan string) {
	for range lines {
	}
}

// kill ends the process and returns when it is gone. Only the goroutine of startCommand reaps the
// process, and then closes done. Until then the process ID cannot belong to another process.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// signal sends a signal to the process unless it has ended.
func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(p.pid, s)
	}
}
