package driverdoor

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/internal/form"
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

// write adds a line. Errors show in sent.
func (l *lines) write(v any) {
	if l.err == nil {
		l.err = l.encoder.Encode(v)
	}
}

// sent flushes, and reports whether there was no error.
func (l *lines) sent() bool {
	if l.err == nil {
		_ = l.control.SetWriteDeadline(time.Now().Add(l.limit)) // what has none has no slow callers
		l.err = l.control.Flush()
	}
	return l.err == nil
}
