//go:build unix

package runner

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/supervise"
)

// startTime is how long a command with a watchdog has to say for the first time that it
// is ready, or alive: as long as service managers give a start.
const startTime = 90 * time.Second

// An office is what the goroutines of a candidate share.
type office struct {
	mu      sync.Mutex     // guards the rest
	signals chan os.Signal // of the command, from before it starts until it has gone; else nil
	watch   *watch         // of the command; nil if there is none
	started chan struct{}  // closed when the command has said that it is ready, or alive; else nil
	line    *show.WaitLine // of the present wait; may be nil
	ended   *exit.Error    // by a signal, and with which status; nil if it was not
}

// begin returns the channel for the signals of a command that is about to start, or nil
// if it must not.
func (o *office) begin() chan os.Signal {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended == nil {
		o.signals = make(chan os.Signal, 16)
	}
	return o.signals
}

// end is called when the command has gone.
func (o *office) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.signals = nil
}

// pass hands a signal to the command, and notes it if it ends the election. It reports
// whether there is a command.
func (o *office) pass(sig syscall.Signal, ends bool) (working bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	working = o.signals != nil
	if working {
		select {
		case o.signals <- sig:
		default: // as package signal does without a listener
		}
	}
	switch {
	case !ends || o.ended != nil:
	case working: // it has the last word
		o.ended = &exit.Error{Status: exit.Signal(int(sig))}
	default:
		o.ended = endedBy(sig, "elect: ended by a signal while it did not lead")
	}
	return working
}

// endWith notes the status of a command that the signal has ended.
func (o *office) endWith(status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = &exit.Error{Status: status}
}

// ending returns whether a signal has ended the election, and how.
func (o *office) ending() (err error, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.ended == nil:
		return nil, false
	case o.ended.Status == exit.OK:
		return nil, true
	}
	return o.ended, true
}

// wait begins to show a wait, and done ends that.
func (o *office) wait(line *show.WaitLine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line = line
}

func (o *office) done() {
	o.mu.Lock()
	line := o.line
	o.mu.Unlock()
	line.End()
}

// follow has the command's messages go to its watch, until stop is called. While it
// starts, no message is required.
func (o *office) follow(w *watch) (stop func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gone, started := make(chan struct{}), make(chan struct{})
	o.watch, o.started = w, started
	if w.Opts.StallAfter > 0 {
		w.desk.pulse.Grace(startTime)
		go func() { // ends with the start, or with the command
			ticker := time.NewTicker(w.Opts.StallAfter / 4)
			defer ticker.Stop()
			for end := time.Now().Add(startTime); time.Now().Before(end); {
				select {
				case <-ticker.C:
					w.held.Heartbeat() // or it would not be renewed
				case <-started:
					return
				case <-gone:
					return
				}
			}
		}()
	}
	return func() {
		close(gone)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.watch, o.started = nil, nil
	}
}

// heard takes a message of the command.
func (c *candidate) heard(m supervise.Message) {
	c.mu.Lock()
	w := c.watch
	alive := m["READY"] == "1" || m["WATCHDOG"] == "1"
	if alive && c.started != nil {
		close(c.started)
		c.started = nil
	}
	c.mu.Unlock()
	if w == nil {
		return
	}
	switch {
	case m["WATCHDOG"] == "trigger":
		w.desk.pulse.Stop()
	case alive:
		w.heartbeat()
	}
	if text, found := m["STATUS"]; found {
		c.Manager.Status("leading: %s", text)
	}
	if usec, found := m["EXTEND_TIMEOUT_USEC"]; found {
		c.Manager.Tell("EXTEND_TIMEOUT_USEC=" + usec)
	}
}

// heartbeat notes that the work goes on.
func (w *watch) heartbeat() {
	w.held.Heartbeat()
	w.desk.pulse.Beat()
}
