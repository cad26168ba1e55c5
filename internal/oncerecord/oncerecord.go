// Package oncerecord has the form in which a store keeps the result of do-once work:
// a header as one line of JSON, followed by the unchanged result. The client library and the
// server read and write it.
package oncerecord

import (
	"bytes"
	"encoding/json"
)

// A Header is the first line of a record.
type Header struct {
	Version     int    `json:"v"`
	Token       uint64 `json:"token"` // the token of the run that made the result
	Fingerprint string `json:"fingerprint,omitempty"`
}

const version = 1

// Format returns the record of a result. It sets the version.
func Format(h Header, value []byte) []byte {
	h.Version = version
	line, _ := json.Marshal(h) // numbers and a checked text: cannot fail
	return append(append(line, '\n'), value...)
}

// Parse returns the header of a record, or of the beginning of one, and the bytes that follow. ok
// is false unless the header is of this version.
func Parse(record []byte) (h Header, value []byte, ok bool) {
	line, value, ok := bytes.Cut(record, []byte{'\n'})
	err := json.Unmarshal(line, &h)
	return h, value, ok && err == nil && h.Version == version
}
