package driver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/internal/sentinel"
	"github.com/holdfast-locks/holdfast/lockinfo"
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
	// It must leave every other lease unchanged, so a break that is late or
	// repeated never ends a lease that was granted after the break was decided.
	// If no lease matches it must change nothing, and return an empty list. A
	// lock that a foreign client holds must be refused with ErrKindMismatch.
	//
	// It must return the records of the leases that it ended, by increasing
	// token. A repeat, with the same req.ID, must return the records of the
	// first time as far as they are remembered (INVARIANT I6).
	Break(ctx context.Context, req BreakRequest) ([]lockinfo.Broken, error)

	// Breaks returns the records of a name, the latest last. A record must be
	// remembered for BreakMemory, but of one name only the latest MaxBreaks,
	// and no longer (INVARIANT I11).
	Breaks(ctx context.Context, name string) ([]lockinfo.Broken, error)
}

// A BreakRequest is a request to take a lock away.
type BreakRequest struct {
	ID    lockinfo.LeaseID `json:"id"` // guaranteed unique to one break, equal in its repeats
	Name  string           `json:"name"`
	Token uint64           `json:"token"`          // the token of the lease; 1 to MaxToken
	Older bool             `json:"older,omitzero"` // also every lease whose token is smaller

	// Closed ends only leases that were released and are kept closed. Without
	// it only live leases end. That holds even if the lease changed from one to
	// the other after the break was decided.
	Closed bool `json:"closed,omitzero"`

	Author string `json:"author"` // who breaks it, and why: for people; guaranteed valid by CheckBreak
	Reason string `json:"reason,omitzero"`
}

// Hits reports whether the request ends a lease with this token.
func (r BreakRequest) Hits(token uint64, released bool) bool {
	return released == r.Closed && (token == r.Token || r.Older && token < r.Token)
}

// ByToken returns the records in the order in which Break must return them.
func ByToken(all map[uint64]lockinfo.Broken) []lockinfo.Broken {
	return slices.SortedFunc(maps.Values(all), func(a, b lockinfo.Broken) int { return cmp.Compare(a.Token, b.Token) })
}

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

// ErrBroken: an operator or another client has ended the lease. It comes together with ErrLost, as
// a *BrokenError.
var ErrBroken = sentinel.ErrBroken
