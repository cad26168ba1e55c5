package driverdoor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// lines writes a stream of JSON values, one a line.
type lines struct {
	door.Stream
	text    bytes.Buffer // not sent yet
	encoder *json.Encoder
}

func newLines(w http.ResponseWriter, patience time.Duration) *lines {
	l := &lines{Stream: door.NewStream(w, form.Lines, patience)}
	l.encoder = json.NewEncoder(&l.text)
	return l
}

// add adds a line to the text.
func (l *lines) add(v any) { _ = l.encoder.Encode(v) } // into memory, and our types have a JSON form

// full reports whether the text should be sent before more is added: a stream keeps the memory of
// its longest text.
func (l *lines) full() bool { return l.text.Len() >= linesPart }

// sent sends the text, and reports whether there was no error.
func (l *lines) sent() bool {
	defer l.text.Reset()
	return l.Send(l.text.Bytes()) == nil
}

const (
	// pingEach is how often a stream sends an empty line. Clients take a stream for broken
	// after three times as long.
	pingEach = form.Silence / 3

	// linesPart is how many bytes of lines may wait to be sent.
	linesPart = 32 << 10

	// lineLimit is how long a client may take to receive a line.
	lineLimit = 15 * time.Second
)

// follow sends the lines of from, and alive now and then. It returns when the client is gone or
// too slow, the caller is revoked, end is closed, or the server drains or closes.
func (d *desk) follow(out *lines, r *door.Request, from *backlog, alive any, end <-chan struct{}) {
	ping := time.NewTicker(pingEach)
	defer ping.Stop()
	for out.sent() {
		select {
		case <-from.wake:
			for _, line := range from.take() {
				if out.add(line); out.full() && !out.sent() {
					return
				}
			}
		case <-ping.C:
			if r.Revoked() {
				return
			}
			out.add(alive)
		case <-d.house.Draining: // the client opens one at another server
			return
		case <-end:
			return
		case <-d.life.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}

// mayFollow reads the request for a stream, and counts the stream until leave is called.
func mayFollow(r *door.Request) (leave func(), err error) {
	var nothing form.Nothing
	if err := cmp.Or(r.Read(&nothing), r.NewWork()); err != nil {
		return nil, err
	}
	r.BodyDone()
	return r.House.Limits.Stream(r.Caller)
}
