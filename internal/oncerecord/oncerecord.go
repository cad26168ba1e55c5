// Package oncerecord has the form in which a store keeps the result of do-once work:
// a header as one line of JSON, followed by the unchanged result. The library reads and
// writes it, and so does the server, whose clients begin and complete work by requests.
package oncerecord

import (
	"bytes"
	"encoding/json"
)

// A Header is the first line of a record.
type Header struct {
	Version     int    `json:"v"`
	Token       uint64 `json:"token"` // of the run that the result is of
	Fingerprint string `json:"fingerprint,omitempty"`
}

const version = 1

// Format returns the record of a result. It sets the version.
func Format(h Header, value []byte) []byte {
	h.Version = version
	line, _ := json.Marshal(h) // numbers and a checked text: cannot fail
	return append(append(line, '\n'), value...)
}

// Parse reads the header of a record, or of its beginning, and returns what follows. It
// reports false if that is not of this version.
func Parse(record []byte) (h Header, value []byte, ok bool) {
	line, value, ok := bytes.Cut(record, []byte{'\n'})
	err := json.Unmarshal(line, &h)
	return h, value, ok && err == nil && h.Version == version
}
