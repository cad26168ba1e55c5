package lockinfo

import (
	"time"

	"github.com/holdfast-locks/holdfast/internal/sentinel"
)

// A Broken is the record of one lease that was broken.
type Broken struct {
	ID      LeaseID `json:"-"` // the ID of the BreakRequest
	LeaseID LeaseID `json:"-"` // LeaseID, Token, Mode and Holder are the lease's
	Token   uint64
	Mode    Mode
	Holder  Holder
	Author  string
	Reason  string
	Ago     time.Duration // since the break, by the store's clock
}

// Err returns the error that the holder of the lease gets.
func (b Broken) Err() error { return &BrokenError{Author: b.Author, Reason: b.Reason} }

// A BrokenError has the author and the reason of a break. It is ErrLost and
// ErrBroken.
type BrokenError struct{ Author, Reason string }

func (e *BrokenError) Error() string {
	return sentinel.ErrLost.Error() + ": " + e.text()
}

// text returns the author and the reason, for people.
func (e *BrokenError) text() string {
	s := "broken by " + e.Author
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// Is makes errors.Is find ErrLost and ErrBroken.
func (e *BrokenError) Is(target error) bool {
	return target == sentinel.ErrLost || target == sentinel.ErrBroken
}
