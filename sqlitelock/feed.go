package sqlitelock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

const (
	// feedInterval is how often the table of events is read while there is a listener. A read
	// without new rows costs next to nothing.
	feedInterval = 20 * time.Millisecond

	// feedRows is how many events are read at once.
	feedRows = 256
)

// A follower reads new events and delivers them while there is a listener.
type follower struct {
	driver.Feed
	mu      sync.Mutex
	running bool // there is a goroutine
	listens bool // it knows the number of the last event
}

// OnEvent implements driver.Historian.
func (e *engine) OnEvent(listener func(lockinfo.HistoryEvent)) (stop func()) {
	if !e.history {
		return func() {}
	}
	f := &e.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	stop = f.OnEvent(listener, f.listens)
	if !f.running && e.enter(context.Background()) == nil {
		f.running = true
		go func() {
			defer e.users.Done()
			e.follow(f)
		}()
	}
	return stop
}

// follow delivers events until the last listener has gone, or until Close.
func (e *engine) follow(f *follower) {
	tick := time.NewTicker(feedInterval)
	defer tick.Stop()
	var last int64
	for {
		if !f.listens {
			err := e.readCurrent(func(r reader) error { _, err := r.sql.one(lastEventSQL, nil, &last); return err })
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

// begin sends a gap event to the listeners once the number of the last event is known. Later events
// are delivered.
func (f *follower) begin(known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listens = known; known {
		f.Tell(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
	}
}

// over reports whether the last listener has gone. The next one starts another goroutine.
func (f *follower) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.Heard() {
		f.running, f.listens = false, false
	}
	return !f.running
}

// tellAfter delivers the events after number last, and returns the new last number. After an error
// the next call reads them. The event last is the first row, unless it was swept since, because a
// sweep leaves the latest event. If there is none, an older database was restored: the feed begins
// anew, and so it does once files that were deleted are back.
func (e *engine) tellAfter(f *follower, last int64) int64 {
	for {
		var rows []event
		err := e.readCurrent(func(r reader) (err error) {
			rows, err = scanAll(r.sql, eventsSinceSQL, []any{last, r.bootID, r.now.boot, int64(r.now.micros), feedRows}, (*event).columns)
			return err
		})
		if _, other := errors.AsType[onefile.OtherFileError](err); other {
			f.Tell(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
			f.begin(false)
			return last
		}
		if err != nil {
			return last
		}
		if len(rows) == 0 && last > 0 {
			f.begin(false)
			return last
		}
		for i := range rows {
			if rows[i].seq == last {
				continue
			}
			if rows[i].seq != last+1 { // events are numbered without gaps
				f.Tell(lockinfo.HistoryEvent{Kind: lockinfo.HistoryGap})
			}
			last = rows[i].seq
			f.Tell(rows[i].shown())
		}
		if len(rows) < feedRows {
			return last
		}
	}
}
