package redislock

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/rediscore"
)

// A watchedConn is one connection of an engine. It records since when a reply has been due. A reply
// to one of several requests counts for all of them until the next write: the client writes a ping
// if it reads nothing for a second.
type watchedConn struct {
	net.Conn
	detector *detector
	addr     string
	connect  func() (net.Conn, error) // opens another connection to the same address
	made     time.Time
	rtt      time.Duration // how long it took to connect

	mu      sync.Mutex  // guards the rest
	timer   *time.Timer // runs look; nil until something is written
	watched bool        // the timer or look is running
	suspect bool        // nothing has been read yet, and the address fell silent recently
	since   time.Time   // first write without a reply; zero if there is none
	silent  time.Duration
}

// Write implements net.Conn.
func (l *watchedConn) Write(p []byte) (int, error) {
	l.mu.Lock()
	if l.since.IsZero() {
		l.since = time.Now()
	}
	if !l.watched {
		l.watched = true
		l.watchLocked(l.firstLookLocked())
	}
	l.mu.Unlock()
	return l.Conn.Write(p)
}

// Read implements net.Conn.
func (l *watchedConn) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 {
		l.since, l.suspect = time.Time{}, false
	}
	if err != nil && l.silent > 0 {
		err = &silentError{l.silent}
	}
	return n, err
}

// A silentError is the error of a connection that was given up. The server may have carried out the
// requests in flight.
type silentError struct{ silent time.Duration }

func (e *silentError) Error() string {
	return fmt.Sprintf("the connection was silent for %s and was given up", e.silent.Round(time.Millisecond))
}

// Is makes it rediscore.ErrGivenUp.
func (e *silentError) Is(target error) bool { return target == rediscore.ErrGivenUp }

// Close implements net.Conn.
func (l *watchedConn) Close() error {
	l.detector.remove(l)
	return l.Conn.Close()
}

func (l *watchedConn) isSuspect() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.suspect
}

func (l *watchedConn) firstLookLocked() time.Duration {
	if l.suspect {
		return l.detector.limit / 4
	}
	return minTimeout
}

func (l *watchedConn) watchLocked(d time.Duration) {
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.look)
	} else {
		l.timer.Reset(d)
	}
}

// look runs when a reply may be overdue, and again until no reply is due.
func (l *watchedConn) look() {
	if !l.overdue(l.detector.timeout(l)) {
		return
	}
	l.detector.probe(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchLocked(dialAgain)
}

// overdue reports whether a reply is late. If not, it resets the timer.
func (l *watchedConn) overdue(timeout time.Duration) bool {
	known := l.detector.knows(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.suspect {
		timeout = l.firstLookLocked()
	}
	if l.since.IsZero() || !known {
		l.watched = false
		return false
	}
	left := timeout - time.Since(l.since)
	if left > 0 {
		l.watchLocked(left)
	}
	return left <= 0
}

// giveUp closes the connection if a reply has been due for longer than timeout, and reports whether
// it did. The outcome of the requests in flight is then unknown.
func (l *watchedConn) giveUp(timeout time.Duration) bool {
	l.mu.Lock()
	if l.suspect {
		timeout = l.firstLookLocked()
	}
	silent := time.Since(l.since)
	if l.since.IsZero() || silent < timeout {
		l.mu.Unlock()
		return false
	}
	l.silent = silent
	l.mu.Unlock()
	l.cut()
	return true
}

// cut closes the connection without the TLS alert, which could block.
func (l *watchedConn) cut() {
	if secure, ok := l.Conn.(*tls.Conn); ok {
		_ = secure.NetConn().Close()
	}
	_ = l.Conn.Close()
}
