package fence

import (
	"fmt"
	"math"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// A Claim is what a holder shows a resource. *holdfast.Lease is one. Both
// values must stay the same for the life of the claim.
type Claim interface {
	Token() uint64
	ID() holdfast.LeaseID
}

// MaxToken is the greatest token that guards accept: the greatest number that
// fits into a bigint column. Tokens of this module's locks are far smaller.
const MaxToken uint64 = math.MaxInt64

// NewClaim makes a claim of a token that came by another way than a
// *holdfast.Lease: in a message, or from another lock service. An empty id
// says that the lease is not known; such claims with equal tokens cannot be
// told apart and count as one holder's.
func NewClaim(token uint64, id holdfast.LeaseID) Claim { return claim{token, id} }

type claim struct {
	token uint64
	id    holdfast.LeaseID
}

func (c claim) Token() uint64        { return c.token }
func (c claim) ID() holdfast.LeaseID { return c.id }

// read returns the values of c, or an error that wraps holdfast.ErrInvalid if
// they or the name of the resource cannot be stored. Resources are named by
// the rules for names of locks.
func read(resource string, c Claim) (claim, error) {
	if err := driver.CheckName(resource); err != nil {
		return claim{}, fmt.Errorf("fence: resource %.40q: %w", resource, err)
	}
	if c == nil {
		return claim{}, fmt.Errorf("fence: resource %q: %w claim: it is nil", resource, holdfast.ErrInvalid)
	}
	v := claim{c.Token(), c.ID()}
	if err := v.check(); err != nil {
		return claim{}, fmt.Errorf("fence: resource %q: %w", resource, err)
	}
	return v, nil
}

func (c claim) check() error {
	if c.token == 0 || c.token > MaxToken {
		return fmt.Errorf("%w token %d: want 1 to %d", holdfast.ErrInvalid, c.token, MaxToken)
	}
	if c.id != "" && !c.id.Valid() {
		return fmt.Errorf("%w lease ID: want 32 lower-case hexadecimal digits or nothing", holdfast.ErrInvalid)
	}
	return nil
}

// passes is the rule of this package: whether c is accepted where mark is the
// last claim that was. Comparing the IDs keeps two holders with equal tokens
// apart, who may have them from two stores.
func (c claim) passes(mark claim) bool {
	return c.token > mark.token || c == mark
}
