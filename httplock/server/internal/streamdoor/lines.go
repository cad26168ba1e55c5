package streamdoor

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// lines write a stream of JSON values, one a line.
type lines struct {
	w        http.ResponseWriter
	aside    func(func()) error // door.Request.Aside
	control  *http.ResponseController
	began    time.Time     // when the request was received
	patience time.Duration // how long a write may take
	open     bool          // something was written
	text     [72]byte      // of a ping
}

// line returns a line of now. The state of a lease in it must be read after that:
// INVARIANT I3.
func (l *lines) line(event string) wire.HoldLine {
	return wire.HoldLine{Event: event, AtMS: l.age().Milliseconds()}
}

// age returns how long ago the request was received.
func (l *lines) age() time.Duration { return time.Since(l.began) }

// write writes a line, and the head before the first: aside, as net/http needs much stack
// for a head.
func (l *lines) write(line wire.HoldLine) (err error) {
	fault := l.aside(func() {
		var text []byte
		if text, err = json.Marshal(line); err == nil {
			err = l.send(append(text, '\n'))
		}
	})
	return cmp.Or(fault, err)
}

// ping writes the line that thousands of streams write every few seconds, as write would,
// and leaves no garbage. The time is that since the request was received; remaining is what
// is left of the lease, or lockinfo.Never for a line without it.
func (l *lines) ping(at, remaining time.Duration) error {
	text := append(l.text[:0], `{"event":"ping","at_ms":`...)
	text = strconv.AppendInt(text, at.Milliseconds(), 10)
	if remaining != lockinfo.Never {
		text = append(text, `,"expires_in_ms":`...)
		text = strconv.AppendInt(text, remaining.Milliseconds(), 10)
	}
	return l.send(append(text, "}\n"...))
}

// send writes text. The error is errSilent if there was no room for it for too long; after
// any other error the connection is closed.
func (l *lines) send(text []byte) (err error) {
	l.begin()
	_ = l.control.SetWriteDeadline(time.Now().Add(l.patience)) // where there is none, write waits
	if _, err = l.w.Write(text); err == nil {
		err = l.control.Flush()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errSilent
	}
	return err
}

// begin writes the head, once. What the server allows for a whole request must not end a
// stream: a deadline for reading would look like the end of the connection.
func (l *lines) begin() {
	if l.open {
		return
	}
	l.open = true
	_ = l.control.SetReadDeadline(time.Time{})
	h := l.w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx and its like buffer no lines then
	l.w.WriteHeader(http.StatusOK)
}
