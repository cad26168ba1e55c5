package fence

import (
	"fmt"
	"math"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Claim is what a holder shows a resource. *holdfast.Lease is one. Both
// values must stay the same for the life of the claim.
type Claim interface {
	Token() uint64
	ID() lockinfo.LeaseID
}

// MaxToken is the greatest token that guards accept: the greatest number that
// fits into a bigint column. Tokens of this module's locks are far smaller.
const MaxToken uint64 = math.MaxInt64

// NewClaim makes a claim from a token that does not come from a
// *holdfast.Lease, but from a message or another lock service. An empty id
// means that the lease is not known; such claims with equal tokens count as one
// holder's.
func NewClaim(token uint64, id lockinfo.LeaseID) Claim { return claim{token, id} }

type claim struct {
	token uint64
	id    lockinfo.LeaseID
}

func (c claim) Token() uint64        { return c.token }
func (c claim) ID() lockinfo.LeaseID { return c.id }

// CheckClaim returns an error that wraps driver.ErrInvalid if the resource's
// name or the values of c cannot be stored. Resources are named by the rules
// for names of locks. Every guard begins with it.
func CheckClaim(resource string, c Claim) error {
	if err := driver.CheckName(resource); err != nil {
		return fmt.Errorf("fence: resource %.40q: %w", resource, err)
	}
	if c == nil {
		return fmt.Errorf("fence: resource %q: %w claim: it is nil", resource, driver.ErrInvalid)
	}
	if token := c.Token(); token == 0 || token > MaxToken {
		return fmt.Errorf("fence: resource %q: %w token %d: want 1 to %d", resource, driver.ErrInvalid, token, MaxToken)
	}
	if id := c.ID(); id != "" && !id.Valid() {
		return fmt.Errorf("fence: resource %q: %w lease ID: want 32 lower-case hexadecimal digits or nothing", resource, driver.ErrInvalid)
	}
	return nil
}

// passes is the rule of this package: it reports whether c is accepted after
// mark, the last claim that was accepted. Comparing the IDs distinguishes two
// holders with equal tokens, which may come from two stores.
func (c claim) passes(mark claim) bool {
	return c.token > mark.token || c == mark
}
