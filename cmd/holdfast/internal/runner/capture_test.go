//go:build unix

package runner

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// feed returns a capture that a writer has written text to. The writer stays open, as if a process
// in the background had it.
func feed(t *testing.T, out io.Writer, limit int, text string) *capture {
	t.Helper()
	c, w, err := newCapture(out, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() }) // closing a pipe does not fail
	write(t, w, text)
	return c
}

func write(t *testing.T, w *os.File, text string) {
	t.Helper()
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// TestCaptureKeepsAndPassesOn checks what a capture keeps and passes on, up to the limit and beyond
// it, while a process in the background keeps the pipe open.
func TestCaptureKeepsAndPassesOn(t *testing.T) {
	const limit = 200_000
	for _, length := range []int{0, 1, limit - 1, limit, limit + 1, 3 * limit} {
		var out bytes.Buffer
		text := strings.Repeat("0123456789", length/10+1)[:length]
		c := feed(t, &out, limit, text)
		kept, tooLong := c.end()
		<-c.done
		if tooLong != (length > limit) || !tooLong && string(kept) != text {
			t.Errorf("of %d bytes %d are kept, too long: %t", length, len(kept), tooLong)
		}
		if out.String() != text || c.failed != nil {
			t.Errorf("of %d bytes %d were passed on: %v", length, out.Len(), c.failed)
		}
	}
}

// A stuckWriter blocks until release is closed.
type stuckWriter struct{ release chan struct{} }

func (s stuckWriter) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

// TestCaptureOfASlowReader checks that a reader that does not read delays neither the command nor
// its end.
func TestCaptureOfASlowReader(t *testing.T) {
	stuck := stuckWriter{make(chan struct{})}
	text := strings.Repeat("x", 900_000) // much more than a pipe holds
	c := feed(t, stuck, 1_000_000, text)
	if kept, tooLong := c.end(); tooLong || string(kept) != text {
		t.Errorf("%d bytes are kept, too long: %t", len(kept), tooLong)
	}
	select {
	case <-c.done:
		t.Error("it is done before its reader is")
	default:
	}
	close(stuck.release)
	<-c.done
}

// TestCaptureHoldsBackWhatIsTooLong checks that output which is not kept does
// not pile up in memory.
func TestCaptureHoldsBackWhatIsTooLong(t *testing.T) {
	stuck := stuckWriter{make(chan struct{})}
	c, w, err := newCapture(stuck, 1000)
	if err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := w.WriteString(strings.Repeat("x", 10_000_000))
		wrote <- err
	}()
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		c.mu.Lock()
		n := len(c.kept)
		c.mu.Unlock()
		if n > 2*backlog {
			t.Errorf("%d bytes are waiting for their reader", n)
			break
		}
	}
	close(stuck.release)
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if _, tooLong := c.end(); !tooLong {
		t.Error("it is not too long")
	}
	<-c.done
	_ = w.Close() // closing a pipe does not fail
}

// A brokenWriter fails at once.
type brokenWriter struct{}

var errBroken = errors.New("broken by a test")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

// TestCaptureOfABrokenReader checks that a reader that goes away does not change what is kept.
func TestCaptureOfABrokenReader(t *testing.T) {
	text := strings.Repeat("x", 300_000)
	c := feed(t, brokenWriter{}, 1_000_000, text)
	kept, tooLong := c.end()
	<-c.done
	if tooLong || string(kept) != text || !errors.Is(c.failed, errBroken) {
		t.Errorf("%d bytes are kept, too long: %t: %v", len(kept), tooLong, c.failed)
	}
}
