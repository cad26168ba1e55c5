package holdfast

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/internal/oncerecord"
)

// replay returns the result that a record holds. It returns ErrFingerprint if
// the record is of another request than fingerprint, where both are known.
func replay(record []byte, fingerprint string) (OnceResult, error) {
	h, value, ok := oncerecord.Parse(record)
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
