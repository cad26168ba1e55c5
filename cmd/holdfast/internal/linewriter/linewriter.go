// Package linewriter writes lines in the background, so that a reader who does not
// read delays nobody: a full pipe on standard error must not hold up the
// renewal of a lock, nor the end of a command that has lost it.
package linewriter

import (
	"io"
	"sync"
	"time"
)

const (
	size     = 64          // lines that may be waiting; more are dropped
	patience = time.Second // how long Close waits for the reader
)

// A Writer writes to one writer. Its methods may be called concurrently.
type Writer struct {
	mu     sync.Mutex // guards lines against Put after Close
	closed bool
	lines  chan string
	done   chan struct{}
}

// New returns a writer for w. The caller must Close it.
func New(w io.Writer) *Writer {
	o := &Writer{lines: make(chan string, size), done: make(chan struct{})}
	go func() { // ends after Close, which waits for it unless w blocks
		defer close(o.done)
		for line := range o.lines {
			_, _ = io.WriteString(w, line) // that a reader went away is not the fault of the job
		}
	}()
	return o
}

// Put writes a line, with its newline, as soon as those before it are written.
// It never blocks. After Close it does nothing.
func (o *Writer) Put(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	select {
	case o.lines <- line:
	default:
	}
}

// Close waits a moment for the lines to be written.
func (o *Writer) Close() {
	o.mu.Lock()
	if !o.closed {
		o.closed = true
		close(o.lines)
	}
	o.mu.Unlock()
	select {
	case <-o.done:
	case <-time.After(patience):
	}
}
