package bell

import (
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	// pollInterval is how often the bell is polled while the system reports no changes
	// of files.
	pollInterval = 5 * time.Millisecond

	// After each change the listener rests restFactor times as long as it has worked, but
	// restLongest at most, so that other processes' releases cost a bounded share of a
	// core. It sees what rang meanwhile after its rest.
	restFactor  = 4
	restLongest = 10 * time.Millisecond
)

// A Listener notices changes of a bell: by messages of the system or, if there are none,
// by polling.
type Listener struct {
	bell     Bell
	messages *fsnotify.Watcher // nil if there are none
	poll     *time.Ticker      // nil while messages come
	last     Content           // the bell at the last look
}

// Listen returns a listener that notices every change from now on. newWatcher
// requests messages about files from the system, which may refuse.
func Listen(b Bell, newWatcher func() (*fsnotify.Watcher, error)) *Listener {
	l := &Listener{bell: b}
	l.messages, _ = newWatcher()
	l.attach()
	l.last = b.Read()
	return l
}

// Run calls heard whenever the bell may have rung, until closing is closed; rung reports
// for which lease IDs it may have. Afterwards Run rests, for at least that long.
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

// attach requests messages about the bell's present file, and starts to poll if the system
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

// wait blocks until the bell may have rung. It reports lost if changes may have been
// missed, and not ok when closing is closed.
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
