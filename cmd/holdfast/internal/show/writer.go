package show

import (
	"io"
	"strings"
	"sync"
	"time"
)

const (
	maxLines       = 64                    // lines that may wait; more are dropped
	writerPatience = time.Second           // how long Close waits for the reader
	hurry          = 10 * time.Millisecond // how long it waits even after its deadline
)

// A Writer writes lines to one io.Writer without blocking its callers. Its methods may be called
// concurrently.
type Writer struct {
	w    io.Writer
	ours func() bool // whether this process may draw on the screen; nil if there is none

	mu      sync.Mutex // guards the rest
	changed sync.Cond
	next    *batch // the next batch to write; nil if there is none
	writing *batch // the batch that is being written
	last    string // the line of Show, below the others
	closed  bool
	done    chan struct{}
}

// A batch has the lines that are written at once.
type batch struct {
	lines   []string
	last    string
	written chan struct{} // closed when the batch is written
}

// NewWriter returns a Writer for w. The caller must call Close. On a terminal, Show draws while
// ours returns true, that is, while this process has the screen. If w is not a terminal, ours is
// nil.
func NewWriter(w io.Writer, ours func() bool) *Writer {
	o := &Writer{w: w, ours: ours, done: make(chan struct{})}
	o.changed.L = &o.mu
	go o.write() // ends after Close, which waits for it unless w blocks
	return o
}

// Put queues a line, which must end in a newline. It never blocks. After Close it does nothing.
func (o *Writer) Put(line string) {
	o.add(func(b *batch) {
		if len(b.lines) < maxLines {
			b.lines = append(b.lines, line)
		}
	})
}

// Show keeps a line, without a newline, below all others; "" removes it. It never blocks, and
// does nothing without a screen. The line must fit into the width of the screen, with the last
// column left free.
func (o *Writer) Show(line string) {
	if o.ours != nil {
		o.add(func(*batch) { o.last = line })
	}
}

// add changes the next batch.
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

// Close removes the line of Show, and waits for everything to be written: until end, or for a
// second if end is zero.
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
			_, _ = io.WriteString(o.w, text) // a reader that goes away must not affect the job
		}
		close(b.written)
	}
}

// take waits for the next batch. It returns nil after Close, when all are written.
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

// The cursor is at the beginning of the drawn line. So it is in the right place even if the
// terminal wraps the line when the window becomes narrower, and everything after it belongs to
// the line.
const clearOwnLine = "\r" + clearRest

// paint returns the text to write for a batch when the line drawn is on the screen, and the line
// that is on the screen afterwards. It draws nothing if another process has the screen.
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
