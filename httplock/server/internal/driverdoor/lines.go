package driverdoor

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// lines writes a body of lines.
type lines struct {
	encoder *json.Encoder
	control *http.ResponseController
	limit   time.Duration // for the client to receive what was flushed
	err     error
}

func newLines(w http.ResponseWriter, limit time.Duration) *lines {
	w.Header().Set("Content-Type", form.Lines)
	w.Header().Set("Cache-Control", "no-store")
	return &lines{encoder: json.NewEncoder(w), control: http.NewResponseController(w), limit: limit}
}

// write adds a line. sent reports its error.
func (l *lines) write(v any) {
	if l.err == nil {
		l.err = l.encoder.Encode(v)
	}
}

// sent flushes, and reports whether there was no error.
func (l *lines) sent() bool {
	if l.err == nil {
		_ = l.control.SetWriteDeadline(time.Now().Add(l.limit)) // a writer without deadlines has no slow clients
		l.err = l.control.Flush()
	}
	return l.err == nil
}

const (
	// pingEach is how often a stream sends an empty line. Clients take a stream for broken
	// after three times as long.
	pingEach = form.Silence / 3

	// lineLimit is how long a client may take to receive a line.
	lineLimit = 15 * time.Second
)

// follow sends what take returns at each signal of wake, and alive in between. It returns when
// the client is gone or too slow, the caller is revoked, end is closed, or the server drains
// or closes.
func (d *desk) follow(out *lines, r *door.Request, wake <-chan struct{}, take func() []any, alive any, end <-chan struct{}) {
	ping := time.NewTicker(pingEach)
	defer ping.Stop()
	for out.sent() {
		select {
		case <-wake:
			for _, line := range take() {
				out.write(line)
			}
		case <-ping.C:
			if r.Revoked() {
				return
			}
			out.write(alive)
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
