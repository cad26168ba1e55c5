package lease

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/oncerecord"
)

// A DoneError ends a wait for do-once work that is done.
type DoneError struct {
	Header oncerecord.Header
	Value  []byte
}

func (e *DoneError) Error() string { return "it is done" }

// Recorded returns the error that ends a request for do-once work with this record.
func (a *Attempt) Recorded(record []byte) error {
	header, value, ok := oncerecord.Parse(record)
	if !ok {
		return a.Failed(fmt.Errorf("%w: what is kept under this key is not the result of do-once work: take another key", driver.ErrKindMismatch))
	}
	if err := a.otherRequest(header.Fingerprint); err != nil {
		return err
	}
	return &DoneError{header, value}
}
