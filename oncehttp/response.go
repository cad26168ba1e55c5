package oncehttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/holdfast-locks/holdfast"
)

// A response is kept as a line of JSON, followed by the unchanged body.
type response struct {
	Version  int                 `json:"v"`
	Status   int                 `json:"status"`
	Header   map[string][][]byte `json:"header,omitempty"`   // bytes, because a value need not be UTF-8; nil deletes
	Overflow bool                `json:"overflow,omitempty"` // header and body were too large to keep
	body     []byte
}

const responseVersion = 1

// encode writes what parse reads.
func (r response) encode() []byte {
	line := r.line()
	if r.Overflow || len(line) > maxHeader {
		r.Overflow, r.Header, r.body = true, nil, nil
		line = r.line()
	}
	return append(append(line, '\n'), r.body...)
}

func (r response) line() []byte {
	r.Version = responseVersion
	line, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("oncehttp: a response of bytes and numbers: %v", err))
	}
	return line
}

// parse reads a kept response.
func parse(kept []byte) (response, error) {
	line, body, ok := bytes.Cut(kept, []byte{'\n'})
	var r response
	if err := json.Unmarshal(line, &r); err != nil || !ok || r.Version != responseVersion || r.Status < 100 || r.Status > 999 {
		return response{}, fmt.Errorf("oncehttp: %w: the result is not a response of this version: forget the key", holdfast.ErrKindMismatch)
	}
	r.body = body
	return r, nil
}

// send replays the response.
func (r response) send(w http.ResponseWriter) {
	h := w.Header()
	for name, values := range r.Header {
		if values == nil {
			delete(h, name)
			continue
		}
		h[name] = make([]string, 0, len(values))
		for _, v := range values {
			h[name] = append(h[name], string(v))
		}
	}
	h.Set(ReplayedHeader, "true")
	w.WriteHeader(r.Status)
	if len(r.body) > 0 {
		_, _ = w.Write(r.body) // a client that is gone needs no answer
	}
}
