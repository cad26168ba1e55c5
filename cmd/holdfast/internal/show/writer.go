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
	w      io.Writer
	screen Screen // nil if w is not a terminal

	mu        sync.Mutex // guards the rest
	wake      sync.Cond
	lines     []string      // the lines to write next
	last      string        // the line of Show, below the others
	changed   bool          // lines or last has changed since the latest take
	unwritten chan struct{} // closed when everything is written; nil if nothing is left to write
	closed    bool
	done      chan struct{}
}

// NewWriter returns a Writer for w. If w is a terminal, screen is that terminal, and Show draws on
// it while this process has it; otherwise screen is nil. The caller must call Close.
func NewWriter(w io.Writer, screen Screen) *Writer {
	o := &Writer{w: w, screen: screen, done: make(chan struct{})}
	o.wake.L = &o.mu
	go o.write() // ends after Close, which waits for it unless w blocks
	return o
}

// Put queues a line, which must end in a newline. It never blocks. After Close it does nothing.
func (o *Writer) Put(line string) {
	o.add(func() {
		if len(o.lines) < maxLines {
			o.lines = append(o.lines, line)
		}
	})
}

// Show keeps a line, without a newline, below all others; "" removes it. It never blocks, and
// does nothing without a screen. The line must fit into the width of the screen, with the last
// column left free.
func (o *Writer) Show(line string) {
	if o.screen != nil {
		o.add(func() { o.last = line })
	}
}

// add calls change, which changes lines or last, and wakes write.
func (o *Writer) add(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	change()
	o.changed = true
	if o.unwritten == nil {
		o.unwritten = make(chan struct{})
	}
	o.wake.Signal()
}

// Flush waits until everything is written, but no longer than limit.
func (o *Writer) Flush(limit time.Duration) {
	o.mu.Lock()
	unwritten := o.unwritten
	o.mu.Unlock()
	if unwritten != nil {
		await(unwritten, limit)
	}
}

// Close removes the line of Show, and waits for everything to be written: until end, or for a
// second if end is zero.
func (o *Writer) Close(end time.Time) {
	o.Show("")
	o.mu.Lock()
	o.closed = true
	o.wake.Signal()
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

// write writes until Close.
func (o *Writer) write() {
	defer close(o.done)
	for drawn := ""; ; {
		text, last, ok := o.take()
		if !ok {
			return
		}
		if text, drawn = o.paint(text, last, drawn); text != "" {
			_, _ = io.WriteString(o.w, text) // a reader that goes away must not affect the job
		}
	}
}

// take waits for something to write, and returns the lines and the line of Show. The caller must
// have written the result of the call before. ok is false after Close, when everything is written.
func (o *Writer) take() (text, last string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.changed && o.unwritten != nil {
		close(o.unwritten)
		o.unwritten = nil
	}
	for !o.changed && !o.closed {
		o.wake.Wait()
	}
	ok, o.changed = o.changed, false
	text, o.lines = strings.Join(o.lines, ""), nil
	return text, o.last, ok
}

// The cursor is at the beginning of the drawn line. So it is in the right place even if the
// terminal wraps the line when the window becomes narrower, and everything after it belongs to
// the line.
const clearOwnLine = "\r" + clearRest

// paint returns the text to write for the lines and for the line of Show, last, when the line
// drawn is on the screen, and the line that is on the screen afterwards. It draws nothing if
// another process has the screen.
func (o *Writer) paint(lines, last, drawn string) (text, draws string) {
	if o.screen == nil || last == "" && drawn == "" || !o.screen.Ours() {
		return lines, ""
	}
	if last == drawn && lines == "" {
		return "", drawn
	}
	text = lines
	if drawn != "" && (lines != "" || last == "") {
		text = clearOwnLine + text
	}
	if last != "" {
		text += "\r" + last + clearRest + "\r"
	}
	return text, last
}
