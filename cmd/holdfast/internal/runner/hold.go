//go:build unix

package runner

import (
	"context"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/keeper"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/show"
)

// A hold has the lease of a job's one name, or the leases of its several names. The leases are
// valid together, as long as each of them is.
type hold struct {
	keeper.Possession
	leases []*holdfast.Lease // in the order in which the names were given
}

// holdOf returns the hold of one name.
func holdOf(l *holdfast.Lease) hold { return hold{l, []*holdfast.Lease{l}} }

// holdOfAll returns the hold of several names, in this order.
func holdOfAll(all *holdfast.Leases, names []string) hold {
	return hold{all, show.Each(names, all.Lease)}
}

// first returns the lease that represents the hold where only one can be reported.
func (h hold) first() *holdfast.Lease { return h.leases[0] }

// lost returns the lease that has ended, and why; nil if none is known.
func (h hold) lost() (*holdfast.Lease, error) {
	for _, l := range h.leases {
		if cause := context.Cause(l.Context()); cause != nil {
			return l, cause
		}
	}
	return nil, nil
}

// Quoted returns names as messages show them.
func Quoted(names []string) string {
	return strings.Join(show.Each(names, strconv.Quote), ", ")
}
