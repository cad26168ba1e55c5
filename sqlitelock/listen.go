package sqlitelock

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/driver"
)

const (
	// pollInterval is how often the bell is looked at where the system has no
	// messages about files to give (any more).
	pollInterval = 5 * time.Millisecond

	// Hearing the bell is followed by a rest of restFactor times as long as
	// the work it made, but of restLongest at most, so that other people's
	// releases cost a bounded share of a core. What rings meanwhile is heard
	// after it.
	restFactor  = 4
	restLongest = 10 * time.Millisecond
)

// An ear hears a bell: through messages of the system or, if there are none, by
// looking at it.
type ear struct {
	bell     bell
	messages *fsnotify.Watcher // nil if there are none
	poll     *time.Ticker      // nil while messages come
	last     tolls             // the bell at the last look
}

// attend hears a bell until Close: it calls began when it has begun to, and heard
// whenever the bell may have rung, which can ask whose cell of it did. Then it rests for
// at least a while. It does nothing after Close.
func (e *Engine) attend(b bell, rest time.Duration, began func(), heard func(rung func(driver.LeaseID) bool)) {
	if e.enter(context.Background()) != nil {
		return
	}
	r := &ear{bell: b}
	r.messages, _ = e.newWatcher()
	r.attach()
	r.last = b.read()
	began()
	go func() {
		defer e.users.Done()
		defer r.close()
		r.hear(e.closing, rest, heard)
	}()
}

// listen starts to hear the bell, once, and lets those look who began to wait
// before that.
func (e *Engine) listen() {
	e.listening.Do(func() {
		e.attend(e.bell, 0, e.watches.TellAll, func(rung func(driver.LeaseID) bool) {
			for id, name := range e.watches.asked(rung) {
				for !e.look(name, id) {
				}
			}
		})
	})
}

// attach asks the system for messages about the file that is the bell now,
// and sees to it that it is looked at if they cannot be had.
func (r *ear) attach() {
	heard := r.messages != nil && r.messages.Add(r.bell.path) == nil
	switch {
	case heard && r.poll != nil:
		r.poll.Stop()
		r.poll = nil
	case !heard && r.poll == nil:
		r.poll = time.NewTicker(pollInterval)
	}
}

func (r *ear) close() {
	if r.poll != nil {
		r.poll.Stop()
	}
	if r.messages != nil {
		_ = r.messages.Close()
	}
}

// wait blocks until the bell may have rung. It reports whether rings may have
// been lost, and not ok when closing is closed.
func (r *ear) wait(closing <-chan struct{}) (lost, ok bool) {
	var events <-chan fsnotify.Event
	var failures <-chan error
	if r.messages != nil {
		events, failures = r.messages.Events, r.messages.Errors
	}
	var ticks <-chan time.Time
	if r.poll != nil {
		ticks = r.poll.C
	}
	select {
	case event := <-events:
		if event.Has(fsnotify.Write) {
			return false, true
		}
		r.attach() // the bell was moved or deleted, or is another one
		return true, true
	case <-failures: //nolint:errcheck // there were more messages than the system keeps
		return true, true
	case <-ticks:
		return false, true
	case <-closing:
		return false, false
	}
}

// hear calls heard whenever the bell may have rung, until closing is closed.
func (r *ear) hear(closing <-chan struct{}, rest time.Duration, heard func(rung func(driver.LeaseID) bool)) {
	for {
		lost, ok := r.wait(closing)
		if !ok {
			return
		}
		start := time.Now()
		before := r.last
		r.last = r.bell.read()
		if !lost && r.last == before {
			continue
		}
		if r.poll != nil {
			r.attach()
		}
		heard(func(id driver.LeaseID) bool { return lost || r.last.rung(&before, id) })
		select {
		case <-time.After(max(rest, min(restFactor*time.Since(start), restLongest))):
		case <-closing:
			return
		}
	}
}

// look tells those who watch id what is new. If that cannot be read they find
// out by themselves. It returns false if it was overtaken by the news that id
// has a place: then it must look again.
func (e *Engine) look(name string, id driver.LeaseID) bool {
	before := e.watches.seen(id)
	now, err := e.clock.now()
	var s sight
	if err == nil {
		_, err = one(e.read[noticeSQL], []any{name, id, e.clock.bootID, now.boot}, &s.token, &s.looks)
	}
	if err != nil {
		e.watches.Tell(id, driver.Notice{})
		return true
	}
	return e.watches.saw(id, before, s)
}
