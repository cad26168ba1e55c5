//go:build unix

package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// wardenCommand is the argument with which this program starts itself as a
// warden. The two that follow are the numbers of its pipes.
const wardenCommand = "__warden"

// init runs a warden, in every program that can start one. The packages that a warden does
// not need are not initialised then: most sort behind this one, or need one that does. So
// this package imports none of them, net included.
func init() {
	if isWarden() {
		os.Exit(beWarden(os.Args[2], os.Args[3]))
	}
}

// isWarden reports whether this process was started as a warden.
func isWarden() bool { return len(os.Args) == 4 && os.Args[1] == wardenCommand }

// A warden is a second process of this program, and the parent of the command:
// it adopts and reaps the job, and kills it when this process cannot, because
// it was killed itself, or because it is stopped beyond the job's time. It takes
// its orders, a line each, from a pipe whose end tells it of our death, and
// reports through another.
type warden struct {
	pid     int
	orders  *os.File
	reports *bufio.Reader
}

// orderTimeout bounds how long an order may wait for a warden that does not
// read: it must never hold up the supervisor.
const orderTimeout = 100 * time.Millisecond

// What a warden reports, each with a number.
const (
	reportStarted   = "started"   // the command, with its process ID
	reportFailed    = "failed"    // to start it, with the error number
	reportStopped   = "stopped"   // the command was, by a signal
	reportSignal    = "signal"    // somebody has sent the warden one
	reportCut       = "cut"       // the job has exceeded its time, and is being killed
	reportExited    = "exited"    // the command has ended, with a status
	reportSignalled = "signalled" // the command was ended by a signal
	reportGone      = "gone"      // nothing of the job is left
)

type report struct {
	what string
	n    int
}

// startWarden starts a warden for a command with standard output stdout. It
// leads a group of its own, so that what is meant for our group or for the command's
// does not reach it, but stays in our session: were it elsewhere, the command's
// group would be an orphaned one, which cannot be stopped from the keyboard.
func startWarden(stdout *os.File) (*warden, error) {
	ordersEnd, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ordersEnd.Close()
	reports, reportsEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, orders.Close())
	}
	defer reportsEnd.Close()
	w := &warden{orders: orders, reports: bufio.NewReader(reports)}
	if err = w.fork(stdout, int(ordersEnd.Fd()), int(reportsEnd.Fd())); err != nil {
		return nil, errors.Join(fmt.Errorf("start the warden: %w", err), orders.Close(), reports.Close())
	}
	return w, nil
}

// fork starts the process. Its ends of the pipes keep their numbers, which
// nothing that this process has inherited for the command can have.
func (w *warden) fork(stdout *os.File, orders, reports int) error {
	if isWarden() { // each would start another, without end
		return errors.New("this process was started as a warden")
	}
	self, err := Executable()
	if err != nil {
		return err
	}
	for _, fd := range []int{orders, reports} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return err
		}
	}
	output := uintptr(unix.Stdout)
	if stdout != nil {
		output = stdout.Fd()
	}
	w.pid, err = syscall.ForkExec(self, []string{"holdfast", wardenCommand, strconv.Itoa(orders), strconv.Itoa(reports)}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, output, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	runtime.KeepAlive(stdout)
	return err
}

// Executable returns this program's file, even if its name is gone.
func Executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// encode returns c as the warden reads it: its length, the number of its
// arguments and whether it goes to the foreground on a line, then its strings,
// each followed by a zero byte.
func (c Command) encode(foreground bool) string {
	var b strings.Builder
	for _, s := range append(append([]string{c.Path}, c.Args...), c.Env...) {
		b.WriteString(s)
		b.WriteByte(0)
	}
	return fmt.Sprintf("%d %d %t\n%s", b.Len(), len(c.Args), foreground, b.String())
}

// decodeCommand reads what encode has written.
func decodeCommand(r *bufio.Reader) (c Command, foreground bool, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return c, false, err
	}
	var length, arguments int
	if _, err := fmt.Sscanf(line, "%d %d %t\n", &length, &arguments, &foreground); err != nil {
		return c, false, err
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(r, data); err != nil {
		return c, false, err
	}
	all := strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
	if len(all) < 1+arguments {
		return c, false, io.ErrUnexpectedEOF
	}
	return Command{Path: all[0], Args: all[1 : 1+arguments], Env: all[1+arguments:]}, foreground, nil
}

// report returns the next report, or an error when the warden has ended.
func (w *warden) report() (r report, err error) {
	line, err := w.reports.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscanf(line, "%s %d\n", &r.what, &r.n)
	}
	return r, err
}

// hasEnded reports whether the warden has ended, before anybody reaps it.
func (w *warden) hasEnded() bool {
	pid, err := unix.Wait4(w.pid, nil, unix.WNOHANG, nil)
	return pid != 0 || err != nil
}

// run has the command started, in the foreground if that is said, and returns
// its process ID, or why it did not start.
func (w *warden) run(c Command, foreground bool) (pgid int, err error) {
	text := c.encode(foreground)
	if !c.KillAt.IsZero() {
		text += untilOrder(c.KillAt)
	}
	_, err = io.WriteString(w.orders, text)
	var r report
	if err == nil {
		r, err = w.report()
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("the warden has ended: %w", err)
	case r.what == reportFailed:
		return 0, syscall.Errno(r.n)
	}
	return r.n, nil
}

// order writes one line. It does not wait for a warden that is stuck: this
// process does the same work as long as it runs.
func (w *warden) order(line string) {
	_ = w.orders.SetWriteDeadline(time.Now().Add(orderTimeout))
	_, _ = io.WriteString(w.orders, line)
}

// until tells the warden to kill the job at an instant.
func (w *warden) until(at time.Time) { w.order(untilOrder(at)) }

// untilOrder is the order to kill the job at an instant.
func untilOrder(at time.Time) string {
	return fmt.Sprintf("until %d\n", int64(bootTime()+time.Until(at)))
}

// dismiss ends the warden. What is left of the job lives on.
func (w *warden) dismiss() {
	w.order("dismissed\n")
	_ = w.orders.Close()
}
