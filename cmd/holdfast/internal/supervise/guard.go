//go:build unix

package supervise

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A guard is the warden's side of the job that it has started.
type guard struct {
	orders  *bufio.Reader
	reports *os.File
	job     job
	pgid    int
	now     func() time.Duration // bootTime
	limit   time.Duration        // when to kill the job, by now; 0: never
	gone    chan struct{}
}

// beWarden runs a command for the process that has started this one, until that process dismisses
// it or ends the orders. The arguments are the descriptors of its pipes. It returns the exit
// status of a warden that has nothing to guard.
func beWarden(ordersEnd, reportsEnd string) int {
	orders, err1 := strconv.Atoi(ordersEnd)
	reports, err2 := strconv.Atoi(reportsEnd)
	if err1 != nil || err2 != nil {
		return 64 // wrong arguments
	}
	unix.CloseOnExec(orders)
	unix.CloseOnExec(reports)
	g := &guard{
		orders:  bufio.NewReader(os.NewFile(uintptr(orders), "orders")),
		reports: os.NewFile(uintptr(reports), "reports"),
		now:     bootTime,
		gone:    make(chan struct{}),
	}
	signals := make(chan os.Signal, 16)
	Catch(signals) // the warden must outlast the signals that end the others
	// The kernel ties the command's parent-death signal to the thread that forks, not to the
	// process. So this thread has to last. It is locked only now: once locked, it could not start
	// the threads that package signal needs, but would need another thread to start them.
	runtime.LockOSThread()
	if err := g.start(); err != nil {
		return 0
	}
	go g.serve(signals) // ends the process
	g.reap()
	awaitGroup(g.pgid)
	g.report(reportGone, 0)
	close(g.gone)
	select {} // for a dismissal, or the end of the orders
}

// start runs the command.
func (g *guard) start() error {
	c, foreground, err := decodeCommand(g.orders)
	if err != nil {
		return err
	}
	adoptOrphans()
	sys := sysProcAttr()
	// The command must be in the foreground from its start. If it were put there a little later,
	// its first use of the terminal might stop it, as Ctrl-Z does.
	sys.Foreground, sys.Ctty = foreground, unix.Stdin
	attr := &syscall.ProcAttr{Env: c.Env, Files: []uintptr{0, 1, 2}, Sys: sys}
	g.pgid, err = syscall.ForkExec(c.Path, c.Args, attr)
	if errors.Is(err, syscall.ENOEXEC) && isText(c.Path) { // a script that names no interpreter
		g.pgid, err = syscall.ForkExec("/bin/sh", append([]string{"sh", c.Path}, c.Args[1:]...), attr)
	}
	if err != nil {
		number, _ := errors.AsType[syscall.Errno](err) // fork and exec fail with nothing else
		g.report(reportFailed, int(number))
		return err
	}
	letGo()
	g.job = newJob(os.Getpid(), g.pgid, nil, "")
	g.report(reportStarted, g.pgid)
	return nil
}

// isText reports whether a file may be a script. Programs, also of other machines, have a zero byte
// near their beginning.
func isText(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [64]byte
	n, _ := f.Read(head[:]) // nothing, if the file is empty: the shell takes it
	return bytes.IndexByte(head[:n], 0) < 0
}

// letGo closes the command's standard files in the warden, so that a reader at the other end of a
// pipe waits for the command only.
func letGo() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = unix.Dup2(null, fd)
	}
	_ = unix.Close(null)
}

// report writes one line. A few bytes always fit into the pipe.
func (g *guard) report(what string, n int) {
	_, _ = fmt.Fprintf(g.reports, "%s %d\n", what, n)
}

// reap waits for the command and all processes that this one adopts. On Linux the kernel reports
// exactly when none is left: this process has no more children.
func (g *guard) reap() {
	waitForAll(func(pid int, ws unix.WaitStatus) {
		switch {
		case pid != g.pgid:
		case ws.Stopped():
			g.report(reportStopped, int(ws.StopSignal()))
		case ws.Signaled():
			g.report(reportSignalled, int(ws.Signal()))
		case ws.Exited():
			g.report(reportExited, ws.ExitStatus())
		}
	})
}

// waitForAll calls tell for each child of this process that stops or ends, until there are no
// children.
func waitForAll(tell func(pid int, ws unix.WaitStatus)) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			return
		default:
			tell(pid, ws)
		}
	}
}

// lookEvery is how often the warden checks the time: its timer follows a clock that stops while
// the machine is suspended.
const lookEvery = time.Second

// serve carries out the orders. It does not return.
func (g *guard) serve(signals <-chan os.Signal) {
	lines := make(chan string)
	go func() { // ends with the orders
		defer close(lines)
		for s := bufio.NewScanner(g.orders); s.Scan(); {
			lines <- s.Text()
		}
	}()
	timer := time.NewTimer(lookEvery)
	for {
		select {
		case line, ok := <-lines:
			switch {
			case !ok: // our supervisor is dead
				g.kill()
				os.Exit(0)
			case line == "dismissed":
				os.Exit(0)
			}
			_, _ = fmt.Sscanf(line, "until %d", &g.limit)
		case <-timer.C:
		case s := <-signals: // meant for the command's parent, which is this process
			g.report(reportSignal, int(s.(syscall.Signal)))
		}
		timer.Reset(g.look())
	}
}

// look kills the job if its time has passed, and returns how long to wait before the next look.
func (g *guard) look() time.Duration {
	if g.limit == 0 {
		return time.Hour
	}
	if left := g.limit - g.now(); left > 0 {
		return min(left, lookEvery)
	}
	g.limit = 0
	g.report(reportCut, 0)
	g.kill()
	return time.Hour
}

// kill kills the job again and again, until only processes are left that this one may not kill,
// or none.
func (g *guard) kill() {
	for pause, hopeless := killPause, 0; hopeless < 2; pause = min(2*pause, maxKillPause) {
		found, refused := g.job.kill()
		if hopeless++; found != len(refused) || found == 0 {
			hopeless = 0
		}
		select {
		case <-g.gone:
			return
		case <-time.After(pause):
		}
	}
}

// Pauses between two walks through a job that is being killed.
const (
	killPause    = time.Millisecond
	maxKillPause = 16 * time.Millisecond
)
