package show

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A buffer records what is written to it, and can block writes.
type buffer struct {
	mu    sync.Mutex
	stuck chan struct{} // nil, or closed when writes continue
	text  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	if b.stuck != nil {
		<-b.stuck
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// take returns what was written since the last call.
func (b *buffer) take() string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

func (b *buffer) want(t *testing.T, want string) {
	t.Helper()
	if got := b.take(); got != want {
		t.Errorf("%q was written, want %q", got, want)
	}
}

// TestLineBelow follows one line on a terminal. It is rewritten in place, erased for other output
// and drawn again below that, and erased at the end.
func TestLineBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen buffer
		o := NewWriter(&screen, &window{})
		o.Put("one\n")
		screen.want(t, "one\n")
		o.Show("1s")
		screen.want(t, "\r1s\x1b[J\r")
		o.Show("1s")
		screen.want(t, "")
		o.Show("2s")
		screen.want(t, "\r2s\x1b[J\r")
		o.Put("two\n")
		screen.want(t, "\r\x1b[Jtwo\n\r2s\x1b[J\r")
		o.Show("")
		screen.want(t, "\r\x1b[J")
		o.Show("")
		screen.want(t, "")
		o.Show("3s")
		screen.take()
		o.Close(time.Time{})
		screen.want(t, "\r\x1b[J")
		o.Show("4s")
		o.Put("too late\n")
		screen.want(t, "")
	})
}

// TestSomebodyElsesScreen checks that nothing is drawn or erased in the background, where the
// screen belongs to another job.
func TestSomebodyElsesScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen buffer
		var owner window
		o := NewWriter(&screen, &owner)
		defer o.Close(time.Time{})
		o.Show("1s")
		screen.take()
		owner.set(func() { owner.others = true })
		o.Show("2s")
		screen.want(t, "")
		o.Put("one\n")
		screen.want(t, "one\n")
		o.Show("")
		screen.want(t, "")
		o.Show("3s")
		screen.want(t, "")
		owner.set(func() { owner.others = false })
		o.Show("3s")
		screen.want(t, "\r3s\x1b[J\r")
	})
}

// TestNoTerminal checks that nothing is drawn without a screen.
func TestNoTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pipe buffer
		o := NewWriter(&pipe, nil)
		o.Show("1s")
		o.Put("one\n")
		o.Close(time.Time{})
		pipe.want(t, "one\n")
	})
}

// TestReaderDoesNotRead checks that a writer waits for its reader only shortly, that the backlog is
// bounded, and that a line that was replaced meanwhile is never drawn.
func TestReaderDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		screen := buffer{stuck: make(chan struct{})}
		o := NewWriter(&screen, &window{})
		o.Put("first\n")
		synctest.Wait()
		for i := range 10 * maxLines {
			o.Put("x\n")
			o.Show(fmt.Sprint(i))
		}
		o.Show("")
		began := time.Now()
		o.Flush(100 * time.Millisecond)
		o.Close(time.Time{})
		if took := time.Since(began); took != 100*time.Millisecond+writerPatience {
			t.Errorf("it has waited for %s", took)
		}
		close(screen.stuck)
		screen.want(t, "first\n"+strings.Repeat("x\n", maxLines))
	})
}

// TestFlush checks that all that was put before is written when Flush returns.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		screen := buffer{stuck: make(chan struct{})}
		time.AfterFunc(time.Second, func() { close(screen.stuck) })
		o := NewWriter(&screen, nil)
		defer o.Close(time.Time{})
		o.Flush(time.Hour) // there is nothing to write
		o.Put("one\n")
		synctest.Wait()
		o.Put("two\n")
		began := time.Now()
		o.Flush(time.Hour)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it has waited for %s", took)
		}
		screen.want(t, "one\ntwo\n")
	})
}
