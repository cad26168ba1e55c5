//go:build unix

package runner

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// backlog is how much of an output that is too long to be kept may wait for
// its reader, in bytes.
const backlog = 64 << 10

// maxPipe is what a pipe can hold, in bytes, unless root has
// changed it.
const maxPipe = 1 << 20

// A capture keeps what a command writes to its standard output, and passes it
// on at once. A reader that is slow or goes away delays neither the command,
// as long as its output may be kept, nor the end of its work.
type capture struct {
	read  *os.File // the end of the pipe that is ours
	out   io.Writer
	limit int // bytes that are kept

	mu      sync.Mutex // guards the rest
	changed sync.Cond
	kept    []byte
	passed  int   // how much of kept was passed on
	tooLong bool  // kept is only what was not passed on yet
	ending  bool  // the command has ended
	whole   bool  // there will be no more
	failed  error // of out: nothing is passed on any more; valid without mu once done is closed

	hasRead chan struct{} // closed when whole
	done    chan struct{} // closed when everything was passed on
}

// newCapture returns a capture and the file that the command is to write to,
// which the caller must close when the command has it. The caller must call
// end, even if there is no command after all.
func newCapture(out io.Writer, limit int) (*capture, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	// Go's pipes never block, which is not what a command expects.
	if err := unix.SetNonblock(int(write.Fd()), false); err != nil {
		return nil, nil, errors.Join(err, read.Close(), write.Close())
	}
	c := &capture{read: read, out: out, limit: limit, hasRead: make(chan struct{}), done: make(chan struct{})}
	c.changed.L = &c.mu
	go c.receive() // ends after end
	go c.pass()    // ends after end, when out has taken everything
	return c, write, nil
}

// end must be called when the command has ended: its output ends there, even if
// others can still write to it. It returns the output, or nil and true if it was
// too long.
func (c *capture) end() (output []byte, tooLong bool) {
	c.mu.Lock()
	c.ending = true
	c.changed.Broadcast()
	c.mu.Unlock()
	_ = c.read.SetReadDeadline(time.Unix(1, 0)) // a pipe can always be told
	<-c.hasRead
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tooLong {
		return nil, true
	}
	return c.kept, false
}

// receive reads until the pipe ends, or until end.
func (c *capture) receive() {
	defer close(c.hasRead)
	chunk := make([]byte, 32<<10)
	for {
		n, err := c.read.Read(chunk)
		c.keep(chunk[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.receiveRest(chunk)
		}
		if err != nil {
			break
		}
	}
	_ = c.read.Close()
	c.mu.Lock()
	c.whole = true
	c.changed.Broadcast()
	c.mu.Unlock()
}

// receiveRest reads what is in the pipe now. Processes in the background may
// go on writing, so it reads no more than a pipe can hold.
func (c *capture) receiveRest(chunk []byte) {
	_ = c.read.SetReadDeadline(time.Time{}) // or the next lines would fail
	conn, err := c.read.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool {
		for left := maxPipe; left > 0; {
			n, err := unix.Read(int(fd), chunk[:min(left, len(chunk))])
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n <= 0 { // the pipe is empty, or at its end
				break
			}
			c.keep(chunk[:n])
			left -= n
		}
		return true
	})
}

// keep adds data. It waits for the reader only if it cannot keep them.
func (c *capture) keep(data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept)+len(data) > c.limit {
		c.tooLong = true
	}
	if c.tooLong {
		for len(c.kept)-c.passed > backlog && !c.ending {
			c.changed.Wait()
		}
		c.kept, c.passed = slices.Clone(c.kept[c.passed:]), 0
	}
	c.kept = append(c.kept, data...)
	c.changed.Broadcast()
}

// pass writes to the reader what is kept.
func (c *capture) pass() {
	defer close(c.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for c.passed == len(c.kept) && !c.whole {
			c.changed.Wait()
		}
		data := c.kept[c.passed:]
		if len(data) == 0 {
			return
		}
		if c.failed == nil {
			c.mu.Unlock()
			_, err := c.out.Write(data)
			c.mu.Lock()
			c.failed = err
		}
		c.passed += len(data)
		c.changed.Broadcast()
	}
}
