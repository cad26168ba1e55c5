package sqlitelock

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

const (
	// feedInterval is how often the table of events is read while somebody listens. It
	// is found by its last row, so that this costs next to nothing.
	feedInterval = 20 * time.Millisecond

	// feedRows is how many events are read at once.
	feedRows = 256
)

// A follower reads the events that are new, and tells them, as long as anybody
// listens.
type follower struct {
	driver.Feed
	mu      sync.Mutex
	running bool // there is a goroutine
	listens bool // which knows where the events begin that it tells
}

// OnEvent implements driver.Historian.
func (e *Engine) OnEvent(told func(driver.Event)) (stop func()) {
	if !e.history {
		return func() {}
	}
	f := &e.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	stop = f.OnEvent(told, f.listens)
	if !f.running && e.enter(context.Background()) == nil {
		f.running = true
		go func() {
			defer e.users.Done()
			e.follow(f)
		}()
	}
	return stop
}

// follow tells of events until nobody listens, or until Close.
func (e *Engine) follow(f *follower) {
	tick := time.NewTicker(feedInterval)
	defer tick.Stop()
	var last int64
	for {
		if !f.listens {
			err := e.read(func(c *conn) error { _, err := c.one(lastEventSQL, nil, &last); return err })
			f.begin(err == nil)
		} else {
			last = e.tellAfter(f, last)
		}
		select {
		case <-tick.C:
		case <-e.closing:
			return
		}
		if f.over() {
			return
		}
	}
}

// begin tells everybody that the events after the last are told from now on, if that
// is known.
func (f *follower) begin(known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listens = known; known {
		f.Tell(driver.Event{Kind: driver.EventGap})
	}
}

// over reports whether nobody listens. Whoever comes then starts another goroutine.
func (f *follower) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.Heard() {
		f.running, f.listens = false, false
	}
	return !f.running
}

// tellAfter tells of the events after number last, and returns the last number. What
// cannot be read now is read the next time.
func (e *Engine) tellAfter(f *follower, last int64) int64 {
	for {
		var rows []event
		err := e.read(func(c *conn) error {
			r, err := e.reader(c)
			if err == nil {
				rows, err = all(c, eventsSinceSQL, []any{last, r.bootID, r.now.boot, int64(r.now.micros), feedRows}, (*event).columns)
			}
			return err
		})
		if err != nil {
			return last
		}
		for i := range rows {
			if rows[i].seq != last+1 { // they are numbered without gaps
				f.Tell(driver.Event{Kind: driver.EventGap})
			}
			last = rows[i].seq
			f.Tell(rows[i].shown())
		}
		if len(rows) < feedRows {
			return last
		}
	}
}
