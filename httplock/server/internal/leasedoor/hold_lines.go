package leasedoor

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/holdfast-locks/holdfast/wire"
)

// lines write a stream of JSON values, one a line.
type lines struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	began    time.Time     // when the request was received
	patience time.Duration // how long a write may take
	open     bool          // something was written
}

// line returns one that is made now. What it says of a lease must be found out after
// that: INVARIANT I3.
func (l *lines) line(event string) wire.HoldLine {
	return wire.HoldLine{Event: event, AtMS: time.Since(l.began).Milliseconds()}
}

// write writes a line, and the head before the first. errSilent says that there was no
// room for it for too long; any other error, that the connection is closed.
func (l *lines) write(line wire.HoldLine) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	l.begin()
	_ = l.control.SetWriteDeadline(time.Now().Add(l.patience)) // where there is none, write waits
	if _, err = l.w.Write(append(text, '\n')); err == nil {
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
	h.Set("X-Accel-Buffering", "no") // asks proxies of nginx's kind not to keep lines
	l.w.WriteHeader(http.StatusOK)
}
