//go:build unix

package runner

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/notify"
)

// startTime is how long a command with a watchdog may take to send its first READY or WATCHDOG
// message. Service managers allow as long for a start.
const startTime = 90 * time.Second

// A running connects the messages of a running command with its watch.
type running struct {
	watch   *watch
	started context.CancelFunc // ends the time to start
}

// follow directs the command's messages to its watch until stop is called. While the command
// starts, it need not send any.
func (c *candidate) follow(w *watch) (stop func()) {
	starting, started := context.WithTimeout(context.Background(), startTime)
	c.running.Store(&running{w, started})
	if w.Opts.StallAfter > 0 {
		w.pulse.Grace(startTime)
		go func() { // ends with the start, or with the command
			ticker := time.NewTicker(w.Opts.StallAfter / 4)
			defer ticker.Stop()
			for {
				select {
				case <-ticker.C:
					w.held.Heartbeat() // or the lease would not be renewed
				case <-starting.Done():
					return
				}
			}
		}()
	}
	return func() {
		started()
		c.running.Store(nil)
	}
}

// heard handles a message of the command.
func (c *candidate) heard(m notify.Message) {
	now := c.running.Load()
	if now == nil {
		return
	}
	alive := m["READY"] == "1" || m["WATCHDOG"] == "1"
	if alive {
		now.started()
	}
	switch {
	case m["WATCHDOG"] == "trigger":
		now.watch.pulse.Stop()
	case alive:
		now.watch.heartbeat()
	}
	if text, found := m["STATUS"]; found {
		c.Manager.Status("leading: %s", text)
	}
	if usec, found := m["EXTEND_TIMEOUT_USEC"]; found {
		c.Manager.Tell("EXTEND_TIMEOUT_USEC=" + usec)
	}
}

// heartbeat notes progress of the work.
func (w *watch) heartbeat() {
	w.held.Heartbeat()
	w.pulse.Beat()
}
