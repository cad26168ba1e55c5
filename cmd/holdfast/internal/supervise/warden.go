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

// wardenCommand is the argument with which this program starts itself as a warden. Two more
// follow: the descriptors of its pipes.
const wardenCommand = "__warden"

// init runs a warden, in every program that can start one. It runs before the packages that a
// warden does not need are initialised, because most of them sort after this one or import one
// that does. So this package must import none of them, such as net.
func init() {
	if isWarden() {
		os.Exit(beWarden(os.Args[2], os.Args[3]))
	}
}

// isWarden reports whether this process was started as a warden.
func isWarden() bool { return len(os.Args) == 4 && os.Args[1] == wardenCommand }

// A warden is a second process of this program, and the parent of the command. It adopts and
// reaps the job, and kills it when this process cannot, because this process was killed or is
// stopped beyond the job's time. It reads its orders, one a line, from a pipe that ends when this
// process dies, and reports through another.
type warden struct {
	pid     int
	orders  *os.File
	reports *bufio.Reader
}

// orderTimeout bounds how long an order may wait for a warden that does not read: the warden must
// never hold up its supervisor.
const orderTimeout = 100 * time.Millisecond

// The reports of a warden. Each comes with a number.
const (
	reportStarted   = "started"   // the command runs, with this process ID
	reportFailed    = "failed"    // the command did not start, with this error number
	reportStopped   = "stopped"   // this signal has stopped the command
	reportSignal    = "signal"    // the warden has got this signal
	reportCut       = "cut"       // the job has exceeded its time, and is being killed
	reportExited    = "exited"    // the command has ended with this status
	reportSignalled = "signalled" // this signal has ended the command
	reportGone      = "gone"      // nothing of the job is left
)

type report struct {
	what string
	n    int
}

// startWarden starts a warden for a command whose standard output is stdout. The warden leads a
// group of its own, so that signals to our group or to the command's do not reach it. It stays in
// our session: otherwise the command's group would be an orphaned one, which cannot be stopped
// from the keyboard.
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

// fork starts the process. The ends of its pipes keep their numbers: no descriptor that this
// process has inherited for the command can have the same.
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

// encode returns c as the warden reads it: a line with its length, the number of its arguments
// and whether it goes to the foreground, then its strings, each followed by a zero byte.
func (c Command) encode(foreground bool) string {
	var b strings.Builder
	for _, s := range append(append([]string{c.Path}, c.Args...), c.Env...) {
		b.WriteString(s)
		b.WriteByte(0)
	}
	return fmt.Sprintf("%d %d %t\n%s", b.Len(), len(c.Args), foreground, b.String())
}

// decodeCommand reads the result of encode.
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

// hasEnded reports whether the warden has ended. It reaps the warden if it has.
func (w *warden) hasEnded() bool {
	pid, err := unix.Wait4(w.pid, nil, unix.WNOHANG, nil)
	return pid != 0 || err != nil
}

// run has the warden start the command, in the foreground if the caller says so. It returns the
// command's process ID, or why it did not start.
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

// dismiss ends the warden. The rest of the job goes on.
func (w *warden) dismiss() {
	w.order("dismissed\n")
	_ = w.orders.Close()
}
