package sqlitelock

import (
	"context"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/whole"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/bell"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// An Engine is one process's connection to a lock database. Use Open to make one, and Close to end
// it.
type Engine struct{ *hidden }

// hidden is engine under a name whose methods go doc does not list, so that go doc shows only what
// programs call.
type hidden = engine

// Path returns the path of the file, without symbolic links.
func (e *Engine) Path() string { return e.path }

// Created reports whether Open has created the database. If several processes open a new database
// at once, it is true for one of them.
func (e *Engine) Created() bool { return e.created }

// Close closes the database. Requests that wait for the database fail with driver.ErrClosed;
// Close waits for requests that have begun.
func (e *Engine) Close() error { return e.hidden.Close() }

// An engine is the implementation of an Engine.
type engine struct {
	path    string
	files   onefile.Files
	created bool // the database is new
	system  bool // it is a system store: see MakeSystem
	clock   clock

	readers chan *conn // idle connections; nil for one that has not been opened

	conn  *conn         // the only connection that writes
	turn  chan struct{} // holds one value while a caller uses conn, stint and added
	queue queue         // of requests for the next transaction
	stint stint
	added int // rows added so far, for the sweep

	bell      bell.Bell
	watches   bell.Watches
	listening sync.Once // starts the listener

	history  bool // events are recorded
	follower follower

	alarm   bell.Bell // rung after a break
	losses  driver.Losses
	alarmed sync.Once // starts the listener to the alarm

	// newWatcher requests file notifications from the system, which may refuse.
	newWatcher func() (*fsnotify.Watcher, error)

	brief func(time.Duration) // sleeps for less than a millisecond

	closing chan struct{} // closed by Close, which ends waits

	mu     sync.Mutex // guards the rest
	closed bool
	users  sync.WaitGroup // requests in progress, and the listeners
}

var _ whole.Engine = (*Engine)(nil)

// Capabilities implements driver.Engine.
func (e *engine) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Shared: true, Semaphore: true, Queue: true, Break: true, Losses: true,
		AcquireAll: true, Records: true, OneTime: true, List: true, Diagnose: true,
		History: e.history,
	}
}

// Close implements driver.Engine.
func (e *engine) Close() error {
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

// closeConnections ignores errors, because no commit is pending.
func (e *engine) closeConnections() {
	for range readers {
		if c := <-e.readers; c != nil {
			_ = c.Close()
		}
	}
	if e.conn != nil {
		_ = e.conn.Close()
	}
	e.files.Close() // last: the files are in use until then
}

// enter keeps Close waiting until the caller calls e.users.Done. It fails
// after Close, and if ctx has ended, in which case nothing was done.
func (e *engine) enter(ctx context.Context) error {
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
