// Package member makes members of a quorum in memory, for tests and examples of package
// quorumlock.
package member

import (
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// New returns a member with an empty store. It is in quarantine until Admit is called, or
// the quarantine has ended.
func New() driver.Member { return mem.NewMember() }
