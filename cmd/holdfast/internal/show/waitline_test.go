package show

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// A window is a terminal in a test. Its mutex guards everything.
type window struct {
	mu      sync.Mutex
	text    bytes.Buffer
	columns int
	others  bool // another job has the screen
	signals chan<- os.Signal
	stops   int
}

func (w *window) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *window) Ours() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.others
}

func (w *window) Columns() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.columns
}

func (w *window) Catch(c chan<- os.Signal)   { w.set(func() { w.signals = c }) }
func (w *window) Release(c chan<- os.Signal) { w.set(func() { w.signals = nil }) }
func (w *window) IsStop(s os.Signal) bool    { return s == syscall.SIGTERM } // a signal that every system has
func (w *window) Stop(c chan<- os.Signal) {
	w.Write([]byte("(stopped)"))
	w.set(func() { w.stops++ })
}

func (w *window) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// want checks what was written since the last call.
func (w *window) want(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.text.String(); got != want {
		t.Errorf("%q was written, want %q", got, want)
	}
	w.text.Reset()
}

// newLine returns a line in a window of 60 columns, or for a pipe, with its window and a function
// that writes other messages.
func newLine(t *testing.T, terminal, verbose bool) (*WaitLine, *window, func(string)) {
	w := &window{columns: 60}
	var screen Screen
	if terminal {
		screen = w
	}
	out := NewWriter(w, screen)
	t.Cleanup(func() { out.Close(time.Time{}) })
	say := func(text string) { out.Put("holdfast: " + text + "\n") }
	return NewWaitLine(out, say, verbose), w, say
}

func second(turn int) holdfast.WaitState {
	return holdfast.WaitState{Name: "n", Place: turn, Queue: 3, Holder: deployer, Since: 5 * time.Second}
}

// TestLine checks what a wait draws on a terminal.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w, say := newLine(t, true, false)
		l.Update(second(2))
		time.Sleep(lineSilence - time.Millisecond)
		l.Update(second(2))
		w.want(t, "")
		time.Sleep(time.Millisecond)
		w.want(t, "\rn: 2nd of 3, held 5s by deploy@web-3: \"release 1.4\"\x1b[J\r")
		w.set(func() { w.columns = 200 })
		time.Sleep(tickEvery)
		w.want(t, "\rwaiting for n: 2nd of 3, held 6s by deploy@web-3 (pid 812, deploy.sh): \"release 1.4\"\x1b[J\r")
		time.Sleep(tickEvery)
		const line = "\rwaiting for n: 2nd of 3, held 7s by deploy@web-3 (pid 812, deploy.sh): \"release 1.4\"\x1b[J\r"
		w.want(t, line)
		say("something else")
		w.want(t, "\r\x1b[Jholdfast: something else\n"+line)

		w.set(func() { w.columns = 14; w.signals <- syscall.SIGHUP }) // any signal redraws the line
		w.want(t, "\rn: 2nd of ...\x1b[J\r")
		w.set(func() { w.signals <- syscall.SIGTERM })
		w.want(t, "\r\x1b[J(stopped)\rn: 2nd of ...\x1b[J\r")

		l.Update(holdfast.WaitState{Name: "n", Outage: errors.New("refused")})
		w.want(t, "\rn: the sto...\x1b[J\r")
		w.set(func() { w.columns = 80 })
		l.Update(holdfast.WaitState{Name: "n", Outage: errors.New("refused")})
		w.want(t, "\rwaiting for n: the store does not answer: refused\x1b[J\r")
		l.End()
		w.want(t, "\r\x1b[J")
		l.Update(second(1))
		l.End()
		time.Sleep(time.Minute)
		w.want(t, "")
		if w.signals != nil || w.stops != 1 {
			t.Errorf("it stopped %d times; the signals are caught: %t", w.stops, w.signals != nil)
		}
	})
}

// TestShortWait checks that a wait of less than a second draws nothing and catches no signal.
func TestShortWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, w, _ := newLine(t, true, true)
		l.Update(second(2))
		time.Sleep(lineSilence - time.Millisecond)
		l.End()
		w.want(t, "")
		l, w, _ = newLine(t, true, true)
		l.End() // there was no wait
		w.want(t, "")
		var none *WaitLine
		none.Update(second(2))
		none.End()
	})
}

// TestInTheBackground checks that nothing is drawn while another job has the screen, and that only
// verbose messages are written then. The line appears when the screen is ours again.
func TestInTheBackground(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			said := func(text string) string {
				if !verbose {
					return ""
				}
				return "holdfast: waiting for n: " + text + ": \"release 1.4\"\n"
			}
			l, w, _ := newLine(t, true, verbose)
			w.set(func() { w.others, w.columns = true, 200 })
			l.Update(second(3))
			time.Sleep(5 * time.Second)
			w.want(t, said("3rd of 3, held 5s by deploy@web-3 (pid 812, deploy.sh)"))
			l.Update(second(2))
			w.want(t, said("2nd of 3, held 5s by deploy@web-3 (pid 812, deploy.sh)"))
			w.set(func() { w.others = false })
			time.Sleep(tickEvery)
			w.want(t, "\rwaiting for n: 2nd of 3, held 6s by deploy@web-3 (pid 812, deploy.sh): \"release 1.4\"\x1b[J\r")
			w.set(func() { w.others = true })
			l.End()
			w.want(t, "")
		})
	}
}

// TestLineOfItsOwn checks a wait without a terminal: it writes one line, or with verbose one for
// each change, and no codes for a terminal.
func TestLineOfItsOwn(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, w, _ := newLine(t, false, verbose)
			l.Update(holdfast.WaitState{Name: "n", Outage: errors.New("refused")}) // reported by others
			w.want(t, "")
			l.Update(holdfast.WaitState{Name: "n", Place: 2, Queue: 2})
			w.want(t, "holdfast: waiting for n: 2nd of 2\n")
			time.Sleep(time.Hour)
			l.Update(holdfast.WaitState{Name: "n", Place: 1, Queue: 1})
			time.Sleep(time.Hour)
			w.want(t, strings.Repeat("holdfast: waiting for n: 1st of 1\n", map[bool]int{true: 1}[verbose]))
			l.End()
			l.Update(holdfast.WaitState{Name: "n", Place: 1, Queue: 2})
			w.want(t, "")
		})
	}
}
