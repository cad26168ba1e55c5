package streamdoor

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// lines writes a stream of JSON values, one a line.
type lines struct {
	door.Stream
	aside func(func()) error // door.Request.Aside
	began time.Time          // when the request was received
	text  [72]byte           // of a ping
}

// line returns a line with the current age. Read the state of the lease for it afterwards:
// INVARIANT I3.
func (l *lines) line(event string) wire.HoldLine {
	return wire.HoldLine{Event: event, AtMS: l.age().Milliseconds()}
}

// age returns how long ago the request was received.
func (l *lines) age() time.Duration { return time.Since(l.began) }

// write writes a line, and the header before the first line. It runs aside, because net/http
// needs much stack for a header.
func (l *lines) write(line wire.HoldLine) (err error) {
	fault := l.aside(func() {
		var text []byte
		if text, err = json.Marshal(line); err == nil {
			err = l.send(append(text, '\n'))
		}
	})
	return cmp.Or(fault, err)
}

// ping does as write for a ping, without garbage: thousands of streams write one every few
// seconds. at is the time since the request was received. remaining is what is left of the
// lease, or lockinfo.Never for a line without it.
func (l *lines) ping(at, remaining time.Duration) error {
	text := append(l.text[:0], `{"event":"ping","at_ms":`...)
	text = strconv.AppendInt(text, at.Milliseconds(), 10)
	if remaining != lockinfo.Never {
		text = append(text, `,"expires_in_ms":`...)
		text = strconv.AppendInt(text, remaining.Milliseconds(), 10)
	}
	return l.send(append(text, "}\n"...))
}

// send writes text. The error is errSilent if the connection had no room for it for too long.
// Any other error means that the connection is closed.
func (l *lines) send(text []byte) error {
	err := l.Send(text)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errSilent
	}
	return err
}
