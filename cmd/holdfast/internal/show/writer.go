package show

import (
	"io"
	"strings"
	"sync"
	"time"
)

const (
	maxLines       = 64                    // lines that may be waiting; more are dropped
	writerPatience = time.Second           // how long Close waits for the reader
	hurry          = 10 * time.Millisecond // how long it waits even if its time has passed
)

// A Writer writes to one writer. Its methods may be called concurrently.
type Writer struct {
	w    io.Writer
	ours func() bool // whether the screen is ours to draw on; nil if there is none

	mu      sync.Mutex // guards the rest
	changed sync.Cond
	next    *batch // what is to be written; nil if there is nothing
	writing *batch // what is being written
	last    string // the line below the others
	closed  bool
	done    chan struct{}
}

// A batch is what is written at once.
type batch struct {
	lines   []string
	last    string
	written chan struct{} // closed when it is
}

// NewWriter returns a writer for w. The caller must Close it. On a terminal, Show draws while
// ours reports that the screen is this process's. If w is not a terminal, ours is nil.
func NewWriter(w io.Writer, ours func() bool) *Writer {
	o := &Writer{w: w, ours: ours, done: make(chan struct{})}
	o.changed.L = &o.mu
	go o.write() // ends after Close, which waits for it unless w blocks
	return o
}

// Put writes a line, with its newline, as soon as those before it are written.
// It never blocks. After Close it does nothing.
func (o *Writer) Put(line string) {
	o.add(func(b *batch) {
		if len(b.lines) < maxLines {
			b.lines = append(b.lines, line)
		}
	})
}

// Show keeps a line, without a newline, below all others; "" takes it away. It
// never blocks, and does nothing where there is no screen. The line must fit
// into the width of the screen, its last column left free.
func (o *Writer) Show(line string) {
	if o.ours != nil {
		o.add(func(*batch) { o.last = line })
	}
}

// add changes what is to be written next.
func (o *Writer) add(change func(*batch)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if o.next == nil {
		o.next = &batch{written: make(chan struct{})}
	}
	change(o.next)
	o.next.last = o.last
	o.changed.Signal()
}

// Flush waits until everything is written, but no longer than limit.
func (o *Writer) Flush(limit time.Duration) {
	o.mu.Lock()
	b := o.next
	if b == nil {
		b = o.writing
	}
	o.mu.Unlock()
	if b != nil {
		await(b.written, limit)
	}
}

// Close takes away the line below the others, and waits a moment for everything
// to be written: until end, or if that is zero for a second.
func (o *Writer) Close(end time.Time) {
	o.Show("")
	o.mu.Lock()
	o.closed = true
	o.changed.Signal()
	o.mu.Unlock()
	limit := writerPatience
	if !end.IsZero() {
		limit = max(time.Until(end), hurry)
	}
	await(o.done, limit)
}

// await waits for done, but no longer than limit.
func await(done <-chan struct{}, limit time.Duration) {
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// write writes batches until Close.
func (o *Writer) write() {
	defer close(o.done)
	for drawn := ""; ; {
		b := o.take()
		if b == nil {
			return
		}
		var text string
		text, drawn = o.paint(b, drawn)
		if text != "" {
			_, _ = io.WriteString(o.w, text) // that a reader went away is not the fault of the job
		}
		close(b.written)
	}
}

// take waits for the next batch, and returns nil when there will be none.
func (o *Writer) take() *batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.next == nil && !o.closed {
		o.writing = nil
		o.changed.Wait()
	}
	o.writing, o.next = o.next, nil
	return o.writing
}

// The cursor stands at the beginning of the line that is drawn. So it is in the right
// place even if the terminal breaks the line in two when its window becomes
// narrower, and everything from there on is the line's.
const clearOwnLine = "\r" + clearRest

// paint returns what is to be written for a batch, if the line that is drawn is
// drawn, and what is drawn then. If the screen is somebody else's, nothing of it
// is touched.
func (o *Writer) paint(b *batch, drawn string) (text, draws string) {
	text = strings.Join(b.lines, "")
	if o.ours == nil || b.last == "" && drawn == "" || !o.ours() {
		return text, ""
	}
	if b.last == drawn && text == "" {
		return "", drawn
	}
	if drawn != "" && (text != "" || b.last == "") {
		text = clearOwnLine + text
	}
	if b.last != "" {
		text += "\r" + b.last + clearRest + "\r"
	}
	return text, b.last
}
