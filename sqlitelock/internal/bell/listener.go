package bell

import (
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	// pollInterval is how often the bell is polled if the system reports no file changes.
	pollInterval = 5 * time.Millisecond

	// After each change the listener pauses restFactor times as long as it has worked, but at most
	// restLongest, so that other processes' releases cost a bounded share of a core. Changes during
	// the pause are handled after it.
	restFactor  = 4
	restLongest = 10 * time.Millisecond
)

// A Listener notices changes of a bell by file notifications of the system or, if there are none,
// by polling.
type Listener struct {
	bell     Bell
	messages *fsnotify.Watcher // nil if the system refuses them
	poll     *time.Ticker      // nil while notifications arrive
	last     Content           // the last content read
}

// Listen returns a listener that notices every change from now on. newWatcher requests file
// notifications from the system, which may refuse.
func Listen(b Bell, newWatcher func() (*fsnotify.Watcher, error)) *Listener {
	l := &Listener{bell: b}
	l.messages, _ = newWatcher()
	l.attach()
	l.last = b.Read()
	return l
}

// Run calls heard whenever the bell may have rung, until closing is closed. rung reports whether it
// may have rung for a lease ID. After each call Run pauses for at least rest.
func (l *Listener) Run(closing <-chan struct{}, rest time.Duration, heard func(rung func(lockinfo.LeaseID) bool)) {
	defer l.close()
	for {
		lost, ok := l.wait(closing)
		if !ok {
			return
		}
		start := time.Now()
		before := l.last
		l.last = l.bell.Read()
		if !lost && l.last == before {
			continue
		}
		if l.poll != nil {
			l.attach()
		}
		heard(func(id lockinfo.LeaseID) bool { return lost || l.last.rung(&before, id) })
		select {
		case <-time.After(max(rest, min(restFactor*time.Since(start), restLongest))):
		case <-closing:
			return
		}
	}
}

// attach requests notifications about the bell's current file, and starts to poll if the system
// refuses.
func (l *Listener) attach() {
	heard := l.messages != nil && l.messages.Add(l.bell.Path) == nil
	switch {
	case heard && l.poll != nil:
		l.poll.Stop()
		l.poll = nil
	case !heard && l.poll == nil:
		l.poll = time.NewTicker(pollInterval)
	}
}

func (l *Listener) close() {
	if l.poll != nil {
		l.poll.Stop()
	}
	if l.messages != nil {
		_ = l.messages.Close()
	}
}

// wait blocks until the bell may have rung. It reports lost if changes may have been missed, and ok
// unless closing is closed.
func (l *Listener) wait(closing <-chan struct{}) (lost, ok bool) {
	var events <-chan fsnotify.Event
	var failures <-chan error
	if l.messages != nil {
		events, failures = l.messages.Events, l.messages.Errors
	}
	var ticks <-chan time.Time
	if l.poll != nil {
		ticks = l.poll.C
	}
	select {
	case event := <-events:
		if event.Has(fsnotify.Write) {
			return false, true
		}
		l.attach() // the bell was moved, deleted or replaced
		return true, true
	case <-failures: //nolint:errcheck // there were more messages than the system keeps
		return true, true
	case <-ticks:
		return false, true
	case <-closing:
		return false, false
	}
}
