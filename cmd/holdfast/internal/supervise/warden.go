//go:build unix

package supervise

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// WardenCommand is the argument with which this program starts itself as a
// warden; the program must then call Warden.
const WardenCommand = "__warden"

// A warden is a small process beside this one that kills the group when this
// process cannot: because it was killed itself, or because it is stopped
// beyond the group's time. It takes its orders, a line each, from a pipe whose
// end tells it of our death.
type warden struct{ orders *os.File }

// orderTimeout bounds how long an order may wait for a warden that does not
// read: it must never hold up the supervisor.
const orderTimeout = 100 * time.Millisecond

// startWarden starts a warden without a group. It is in a session of its own,
// so that neither the terminal nor a signal to our group reaches it, and it
// keeps none of our files open.
func startWarden() (*warden, error) {
	self, err := executable()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		defer null.Close()
		_, err = syscall.ForkExec(self, []string{"holdfast", WardenCommand}, &syscall.ProcAttr{
			Files: []uintptr{read.Fd(), null.Fd(), null.Fd()},
			Sys:   &syscall.SysProcAttr{Setsid: true},
		})
	}
	if err != nil {
		write.Close()
		return nil, fmt.Errorf("start the warden: %w", err)
	}
	return &warden{write}, nil
}

// executable returns this program's file, also if its name is gone.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// order writes one line. A warden that is gone or stuck is no reason to end
// the command: this process does the same work as long as it runs.
func (w *warden) order(format string, arguments ...any) {
	_ = w.orders.SetWriteDeadline(time.Now().Add(orderTimeout))
	_, _ = fmt.Fprintf(w.orders, format+"\n", arguments...)
}

// guard gives the warden its group.
func (w *warden) guard(pgid int) { w.order("group %d", pgid) }

// until tells the warden to kill the group at t.
func (w *warden) until(t time.Time) {
	w.order("until %d", monotonic()+int64(time.Until(t)))
}

// dismiss ends the warden. What is left of the group lives on.
func (w *warden) dismiss() {
	w.order("dismissed")
	_ = w.orders.Close()
}

// monotonic reads the clock that time.Now carries along, as a number that
// means the same in every process.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("holdfast: no monotonic clock: " + err.Error())
	}
	return ts.Nano()
}

// Warden carries out the orders of the process that started it, until it is
// dismissed or the orders end.
func Warden(orders io.Reader) {
	// It must outlast whatever ends the others.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	lines := make(chan string)
	go func() { // ends with the orders
		defer close(lines)
		for s := bufio.NewScanner(orders); s.Scan(); {
			lines <- s.Text()
		}
	}()
	var g guarded
	timer := time.NewTimer(0)
	for {
		select {
		case line, ok := <-lines:
			if !ok { // our supervisor is dead
				g.kill()
				return
			}
			if line == "dismissed" {
				return
			}
			g.obey(line)
		case <-timer.C:
		}
		if left := g.left(); left > 0 {
			timer.Reset(left)
		} else {
			g.kill()
		}
	}
}

// guarded is the group of a warden.
type guarded struct {
	pgid  int   // 0: none
	limit int64 // on the monotonic clock; 0: none
}

// obey notes an order.
func (g *guarded) obey(order string) {
	var n int64
	if _, err := fmt.Sscanf(order, "group %d", &n); err == nil {
		g.pgid = int(n)
	} else if _, err := fmt.Sscanf(order, "until %d", &n); err == nil {
		g.limit = n
	}
}

// left returns how long the group may live on.
func (g *guarded) left() time.Duration {
	if g.limit == 0 {
		return time.Hour
	}
	return time.Duration(g.limit - monotonic())
}

// kill kills the group, once: its number may be another's afterwards.
func (g *guarded) kill() {
	if g.pgid > 1 {
		unix.Kill(-g.pgid, unix.SIGKILL)
		g.pgid = 0
	}
}
