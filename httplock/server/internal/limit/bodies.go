package limit

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// How many bytes of bodies may count at a time. A body counts from before it is read until its
// request is answered, or until it is no longer used. A body above the limit is accepted if no
// other body counts.
const (
	CallerBytes = 8 << 20  // of one caller
	ServerBytes = 64 << 20 // of all
)

// Body counts n bytes of a body of c, until BodyDone.
func (l *Limits) Body(c *caller.Caller, n int64) error {
	if n == 0 {
		return nil
	}
	a, closed := l.open(c)
	defer closed()
	if l.bytes > 0 && l.bytes+n > ServerBytes {
		return &Exceeded{Code: "busy", Again: time.Second, Busy: true, Detail: fmt.Sprintf(
			"the bodies of all requests at this server have more than %d bytes together: ask again, or another server; nothing was done", ServerBytes)}
	}
	if a.bytes > 0 && a.bytes+n > CallerBytes {
		return &Exceeded{Code: "too-many-bytes", Again: time.Second, Detail: fmt.Sprintf(
			"the bodies of your requests at this server have more than %d bytes together: ask again when some are answered; nothing was done", CallerBytes)}
	}
	a.bytes += n
	l.bytes += n
	return nil
}

// BodyDone reports that n bytes of a body of c are no longer used.
func (l *Limits) BodyDone(c *caller.Caller, n int64) {
	if n == 0 {
		return
	}
	a, closed := l.open(c)
	defer closed()
	a.bytes -= n
	l.bytes -= n
}
