package door

import (
	"net/http"
	"time"
)

// A Stream is a response of many parts. The client receives each part at once.
type Stream struct {
	Patience time.Duration // how long the client may take to receive a part
	Open     bool          // the header is written

	w       http.ResponseWriter
	control *http.ResponseController
	kind    string
}

// NewStream returns a stream of this content type. It writes nothing yet.
func NewStream(w http.ResponseWriter, kind string, patience time.Duration) Stream {
	return Stream{Patience: patience, w: w, control: http.NewResponseController(w), kind: kind}
}

// Send writes a part, which may be in pieces. It writes the header before the first part. It fails
// if the client is gone, or too slow.
func (s *Stream) Send(pieces ...[]byte) (err error) {
	if !s.Open {
		s.begin()
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(s.Patience)) // without deadlines, Write waits
	for _, text := range pieces {
		if err == nil && len(text) > 0 {
			_, err = s.w.Write(text)
		}
	}
	if err == nil {
		err = s.control.Flush()
	}
	return err
}

// begin writes the header. It removes the read deadline of the request, which would look like the
// end of the connection.
func (s *Stream) begin() {
	s.Open = true
	_ = s.control.SetReadDeadline(time.Time{})
	h := s.w.Header()
	h.Set("Content-Type", s.kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies such as nginx then buffer nothing
	s.w.WriteHeader(http.StatusOK)
}
