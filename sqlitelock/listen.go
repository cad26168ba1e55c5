package sqlitelock

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/driver"
)

const (
	// pollInterval is how often the bell is polled where the system gives no
	// messages about files, or no longer does.
	pollInterval = 5 * time.Millisecond

	// After the bell the listener rests restFactor times as long as it has
	// worked, but restLongest at most, so that other people's releases cost a
	// bounded share of a core. It hears what rang meanwhile after its rest.
	restFactor  = 4
	restLongest = 10 * time.Millisecond
)

// An ear hears a bell: by messages of the system or, if there are none, by polling.
type ear struct {
	bell     bell
	messages *fsnotify.Watcher // nil if there are none
	poll     *time.Ticker      // nil while messages come
	last     tolls             // the bell at the last look
}

// attend starts a listener to a bell, which ends with Close. It calls began first,
// and heard whenever the bell may have rung; rung says for which lease IDs it may
// have. After that it rests, for at least that long. After Close attend does
// nothing.
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

// listen starts the listener to the bell, once, and tells those to look who began
// to wait before it.
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
// and sees to it that it is polled if there are none.
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

// look tells those who watch id what is new. If it cannot read that, they find out
// by themselves. It returns false if id got its place meanwhile: then it must look
// again.
func (e *Engine) look(name string, id driver.LeaseID) bool {
	before := e.watches.seen(id)
	now, err := e.clock.now()
	var s sight
	if err == nil {
		err = e.read(func(c *conn) error {
			_, err := c.one(noticeSQL, []any{name, id, e.clock.bootID, now.boot}, &s.token, &s.looks)
			return err
		})
	}
	if err != nil {
		e.watches.Tell(id, driver.Notice{})
		return true
	}
	return e.watches.saw(id, before, s)
}
