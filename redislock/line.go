package redislock

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/rediscore"
)

// A line is one connection of an engine. It knows since when it owes an
// answer. A connection over which an answer has come for one of several
// requests counts as well until the next is written: the client writes a ping
// if nothing comes for a second.
type line struct {
	net.Conn
	board   *switchboard
	addr    string
	connect func() (net.Conn, error) // makes another to the same place
	made    time.Time
	rtt     time.Duration // how long it took to connect

	mu      sync.Mutex  // guards the rest
	timer   *time.Timer // runs look; nil until something is written
	watched bool        // the timer runs, or look does
	hurried bool        // nothing was heard over it, and it hardly gets time
	since   time.Time   // when the first of what has no answer was written; zero if nothing
	silent  time.Duration
}

// Write implements net.Conn.
func (l *line) Write(p []byte) (int, error) {
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
func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 {
		l.since, l.hurried = time.Time{}, false
	}
	if err != nil && l.silent > 0 {
		err = &silentError{l.silent}
	}
	return n, err
}

// A silentError is the end of a connection that was given up. What was under
// way on it may have been carried out.
type silentError struct{ silent time.Duration }

func (e *silentError) Error() string {
	return fmt.Sprintf("the connection was silent for %s and was given up", e.silent.Round(time.Millisecond))
}

// Is makes it rediscore.ErrGivenUp.
func (e *silentError) Is(target error) bool { return target == rediscore.ErrGivenUp }

// Close implements net.Conn.
func (l *line) Close() error {
	l.board.remove(l)
	return l.Conn.Close()
}

func (l *line) isHurried() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hurried
}

func (l *line) firstLookLocked() time.Duration {
	if l.hurried {
		return l.board.haste / 4
	}
	return minPatience
}

func (l *line) watchLocked(d time.Duration) {
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.look)
	} else {
		l.timer.Reset(d)
	}
}

// look runs when an answer may be overdue, and goes on until none is owed.
func (l *line) look() {
	if !l.overdue(l.board.patience(l)) {
		return
	}
	l.board.doubt(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchLocked(dialAgain)
}

// overdue reports whether an answer is. If not, it sees to it that look runs
// again when one may be.
func (l *line) overdue(patience time.Duration) bool {
	known := l.board.knows(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hurried {
		patience = l.firstLookLocked()
	}
	if l.since.IsZero() || !known {
		l.watched = false
		return false
	}
	left := patience - time.Since(l.since)
	if left > 0 {
		l.watchLocked(left)
	}
	return left <= 0
}

// giveUp closes the connection if it has owed an answer for that long; what
// is under way on it then has an unknown outcome. It reports whether it did.
func (l *line) giveUp(patience time.Duration) bool {
	l.mu.Lock()
	if l.hurried {
		patience = l.firstLookLocked()
	}
	silent := time.Since(l.since)
	if l.since.IsZero() || silent < patience {
		l.mu.Unlock()
		return false
	}
	l.silent = silent
	l.mu.Unlock()
	l.cut()
	return true
}

// cut closes the connection without a farewell, which TLS would wait for.
func (l *line) cut() {
	if secure, ok := l.Conn.(*tls.Conn); ok {
		_ = secure.NetConn().Close()
	}
	_ = l.Conn.Close()
}
