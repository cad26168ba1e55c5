package holdfast

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A recordHeader is the first line of the record of do-once work, as JSON. The
// result follows as it is.
type recordHeader struct {
	Version     int    `json:"v"`
	Token       uint64 `json:"token"`
	Fingerprint string `json:"fingerprint,omitempty"`
}

const recordVersion = 1

func formatRecord(h recordHeader, value []byte) []byte {
	h.Version = recordVersion
	line, _ := json.Marshal(h) // numbers and a checked text: cannot fail
	return append(append(line, '\n'), value...)
}

// replay returns the result that a record holds. It returns ErrFingerprint if
// the record is of another request than fingerprint, where both are known.
func replay(record []byte, fingerprint string) (OnceResult, error) {
	h, value, ok := parseRecord(record)
	switch {
	case ok:
	case parseSchedule(record) != nil:
		return OnceResult{}, fmt.Errorf("%w: it is a schedule: see EveryStatus, or take another name for the key", ErrKindMismatch)
	default:
		return OnceResult{}, fmt.Errorf("%w: the record is not of this version: forget the key", ErrKindMismatch)
	}
	if err := compareFingerprints(h.Fingerprint, fingerprint); err != nil {
		return OnceResult{}, err
	}
	return OnceResult{Value: value, Replayed: true, Token: h.Token}, nil
}

// parseRecord reads the header of a record, or of its beginning, and returns what
// follows.
func parseRecord(record []byte) (h recordHeader, value []byte, ok bool) {
	line, value, ok := bytes.Cut(record, []byte{'\n'})
	err := json.Unmarshal(line, &h)
	return h, value, ok && err == nil && h.Version == recordVersion
}
