package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Breaker is an engine with Capabilities.Break: it can take leases away from
// their holders, for people who know that a holder is dead or wrong.
type Breaker interface {
	// Break ends leases before their time: the live lease of the name with
	// req.Token, or, with req.Older, every one whose token is at most
	// req.Token. With req.Closed it ends, in the same way, what KeepFor keeps
	// closed, and nothing else. In the same step it must hand the lock over to
	// the queue, store a record of each lease that it ended, and tell the
	// engines of their holders; see LossTeller.
	//
	// It must leave every other lease as it is, so a break that is late or
	// repeated never hits whoever was granted the lock after it was decided.
	// If no lease fits it must change nothing, and answer with an empty
	// list. A lock that a foreign client holds must be refused with
	// ErrKindMismatch.
	//
	// It must answer with the records of the leases that it ended, by
	// increasing token. A repeat, with the same req.ID, must answer with those
	// of the first time as far as they are remembered (INVARIANT I6).
	Break(ctx context.Context, req BreakRequest) ([]Broken, error)

	// Breaks returns the records of a name, the latest last. A record must be
	// remembered for BreakMemory, but of one name only the latest MaxBreaks,
	// and no longer (INVARIANT I11).
	Breaks(ctx context.Context, name string) ([]Broken, error)
}

// A BreakRequest asks to take a lock away.
type BreakRequest struct {
	ID    LeaseID // guaranteed unique to one break, equal in its repeats
	Name  string
	Token uint64 // of the lease; 1 to MaxToken
	Older bool   // also every lease whose token is smaller

	// Closed is about what was released and is kept closed. Without it such a
	// lease stays, and with it a live one, even if it was the other when the
	// break was decided.
	Closed bool

	Author string // who breaks it, and why: for people; guaranteed valid by CheckBreak
	Reason string
}

// Hits reports whether the request is about a lease with this token.
func (r BreakRequest) Hits(token uint64, released bool) bool {
	return released == r.Closed && (token == r.Token || r.Older && token < r.Token)
}

// A Broken is the record of one lease that was broken.
type Broken struct {
	ID      LeaseID `json:"-"` // of the BreakRequest
	LeaseID LeaseID `json:"-"` // of the lease
	Token   uint64  // of the lease
	Permits int     // of a Semaphore; else 0
	Holder  Holder  // whose lease it was
	Author  string
	Reason  string
	Ago     time.Duration // since the break; of the store's clock
}

// ByToken returns records in the order in which Break must answer with them.
func ByToken(all map[uint64]Broken) []Broken {
	return slices.SortedFunc(maps.Values(all), func(a, b Broken) int { return cmp.Compare(a.Token, b.Token) })
}

// Err returns what the holder of the lease is told.
func (b Broken) Err() error { return &BrokenError{Author: b.Author, Reason: b.Reason} }

const (
	// BreakMemory is how long the record of a broken lease is remembered.
	BreakMemory = 24 * time.Hour

	// MaxBreaks is how many records of one name are remembered.
	MaxBreaks = 128

	// MaxAuthor and MaxReason are the greatest lengths in bytes.
	MaxAuthor = 256
	MaxReason = 1024
)

// CheckBreak returns an error that wraps ErrInvalid unless author and reason
// can be kept and shown: UTF-8 without control characters (see IsControl), not
// longer than MaxAuthor and MaxReason, and with an author.
func CheckBreak(author, reason string) error {
	if author == "" {
		return fmt.Errorf("%w author: it is empty: say who breaks the lock", ErrInvalid)
	}
	if err := checkText("author", author, MaxAuthor); err != nil {
		return err
	}
	return checkText("reason", reason, MaxReason)
}

// ErrBroken: somebody took the lock away. It comes together with ErrLost, as
// a *BrokenError.
var ErrBroken = errors.New("broken")

// A BrokenError says who took a lock away, and why. It is ErrLost and
// ErrBroken.
type BrokenError struct{ Author, Reason string }

func (e *BrokenError) Error() string {
	return ErrLost.Error() + ": " + e.told()
}

// told says who did it, and why.
func (e *BrokenError) told() string {
	s := "broken by " + e.Author
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// Is makes errors.Is find ErrLost and ErrBroken.
func (e *BrokenError) Is(target error) bool { return target == ErrLost || target == ErrBroken }
