package sqlitelock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/driver"
)

// An Engine is one process's connection to a lock database. Use Open to make
// one, and Close it in the end.
type Engine struct {
	path    string
	files   fileSet // what was at path when it was opened
	created bool    // the database is new
	system  bool    // it is a system store: see MakeSystem
	clock   clock

	version atomic.Int64 // of a system store's schema when it was last seen to be ours

	witness witness

	readers chan *conn // those that nobody uses; nil for one that is not open yet

	conn  *conn         // the only one that writes
	turn  chan struct{} // holds one value while somebody uses conn
	line  line          // who waits for it
	stint stint         // used by whoever has the turn
	added int           // rows until now, for the sweep; used by whoever has the turn

	bell      bell
	watches   watches
	listening sync.Once // starts the listener

	history  bool // what happens is written down
	follower follower

	alarm   bell // rung after a break
	losses  driver.Losses
	alarmed sync.Once // starts the listener to the alarm

	// newWatcher asks the system for messages about files, which it may refuse.
	newWatcher func() (*fsnotify.Watcher, error)

	brief func(time.Duration) // sleeps for less than a millisecond

	closing chan struct{} // closed by Close: waits end

	mu     sync.Mutex // guards the rest
	closed bool
	users  sync.WaitGroup // requests under way, and the listeners
}

var (
	_ driver.Engine      = (*Engine)(nil)
	_ driver.Queuer      = (*Engine)(nil)
	_ driver.Downgrader  = (*Engine)(nil)
	_ driver.AllAcquirer = (*Engine)(nil)
	_ driver.Recorder    = (*Engine)(nil)
	_ driver.Vault       = (*Engine)(nil)
	_ driver.Lister      = (*Engine)(nil)
	_ driver.Breaker     = (*Engine)(nil)
	_ driver.LossTeller  = (*Engine)(nil)
	_ driver.Historian   = (*Engine)(nil)
)

// Capabilities implements driver.Engine.
func (e *Engine) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Shared: true, Semaphore: true, Queue: true, Break: true, Losses: true,
		AcquireAll: true, Records: true, ListRecords: true, OneTime: true, List: true, Diagnose: true,
		History: e.history,
	}
}

// Path returns the one name of the file, without symbolic links.
func (e *Engine) Path() string { return e.path }

// Created reports whether Open has created the database: then nobody has used it
// before. Of several processes that create it together, one is told so.
func (e *Engine) Created() bool { return e.created }

// Close implements driver.Engine. Requests that wait for the database fail
// with driver.ErrClosed; Close waits for those that have begun.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	close(e.closing)
	e.mu.Unlock()

	e.users.Wait()
	e.closeConnections()
	return nil
}

// closeConnections leaves nothing to report: every commit is behind us.
func (e *Engine) closeConnections() {
	for range readers {
		if c := <-e.readers; c != nil {
			_ = c.Close()
		}
	}
	if e.conn != nil {
		_ = e.conn.Close()
	}
	e.witness.close() // last: it says that the files are in use
}

// enter keeps Close waiting until the caller calls e.users.Done. It fails
// after Close, and if ctx has ended, in which case nothing was done.
func (e *Engine) enter(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return driver.ErrClosed
	}
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	e.users.Add(1)
	return nil
}
