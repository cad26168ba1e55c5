package fence

import (
	"errors"
	"fmt"
)

// The errors that a caller may test with errors.Is. Other errors wrap
// the database's or the context's.
var (
	// ErrStale: the resource has seen a later holder. The error is a
	// *StaleError. The lease has ended: undo the work outside of the resource,
	// and write nothing more.
	ErrStale = errors.New("stale fencing token")

	// ErrFull: a Gate has MaxResources marks.
	ErrFull = errors.New("too many resources")
)

// A StaleError is the refusal of a claim. It is ErrStale. Nothing was written.
type StaleError struct {
	Resource string
	Token    uint64 // the refused token
	Current  uint64 // the mark; equal to Token if another lease has the same one, 0 if unknown
}

func (e *StaleError) Error() string {
	s := fmt.Sprintf("fence: resource %q: %v %d", e.Resource, ErrStale, e.Token)
	switch {
	case e.Current == e.Token:
		return s + ": another lease came first with the same token"
	case e.Current != 0:
		return fmt.Sprintf("%s: a holder with %d has been here", s, e.Current)
	}
	return s + ": a later holder has been here"
}

// Is makes errors.Is(err, ErrStale) true.
func (e *StaleError) Is(target error) bool { return target == ErrStale }
