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

// backlog is how many bytes of an output that is too long to keep may wait for its reader.
const backlog = 64 << 10

// maxPipe is how many bytes a pipe can hold, unless root has changed the limit.
const maxPipe = 1 << 20

// A capture keeps what a command writes to its standard output, and passes it on at once. A
// reader that is slow or goes away does not delay the end of the command's work. It delays the
// command only while the output is too long to keep.
type capture struct {
	read  *os.File // our end of the pipe
	out   io.Writer
	limit int // bytes that are kept

	mu      sync.Mutex // guards the rest
	changed sync.Cond
	kept    []byte
	passed  int   // how much of kept was passed on
	tooLong bool  // kept is only what was not passed on yet
	ending  bool  // the command has ended
	whole   bool  // there will be no more
	failed  error // of out, after which nothing is passed on; readable without mu once done is closed

	hasRead chan struct{} // closed when whole
	done    chan struct{} // closed when everything was passed on
}

// newCapture returns a capture and the file for the command to write to. The caller must close
// the file once the command has it, and must call end even if no command was started.
func newCapture(out io.Writer, limit int) (*capture, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	// Go's pipes are non-blocking, which a command does not expect.
	if err := unix.SetNonblock(int(write.Fd()), false); err != nil {
		return nil, nil, errors.Join(err, read.Close(), write.Close())
	}
	c := &capture{read: read, out: out, limit: limit, hasRead: make(chan struct{}), done: make(chan struct{})}
	c.changed.L = &c.mu
	go c.receive() // ends after end
	go c.pass()    // ends after end, when out has taken everything
	return c, write, nil
}

// end must be called when the command has ended. The output ends there, even if other processes
// can still write to it. end returns the output, or nil and true if it was too long.
func (c *capture) end() (output []byte, tooLong bool) {
	c.mu.Lock()
	c.ending = true
	c.changed.Broadcast()
	c.mu.Unlock()
	_ = c.read.SetReadDeadline(time.Unix(1, 0)) // a pipe supports deadlines
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
	_ = c.read.SetReadDeadline(time.Time{}) // or the reads below would fail
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

// keep adds data. It waits for the reader only if the output is too long to keep.
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

// pass writes the output to out.
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
