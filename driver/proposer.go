package driver

import (
	"fmt"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Proposer identifies the engine that has proposed a lease: 128 random bits, which the
// engine draws when it is opened, in the form of a lease ID. Several engines may propose
// one lease ID. Each withdraws only its own proposals, and no lease that another engine
// was granted.
type Proposer string

// NewProposer draws a Proposer.
func NewProposer() Proposer { return Proposer(lockinfo.NewLeaseID()) }

// Check returns an error that wraps ErrInvalid if the request names no valid
// proposer.
func (r *ProposeRequest) Check() error { return r.Proposer.check("proposal") }

// Check returns an error that wraps ErrInvalid if the request names no valid proposer
// of the lease to end.
func (r *WithdrawRequest) Check() error {
	switch {
	case r.Released && r.Proposer != "":
		return fmt.Errorf("%w withdrawal: a release ends the lease of any proposer: leave Proposer empty", ErrInvalid)
	case !r.Released && (r.KeepFor != 0 || r.Cancel):
		return fmt.Errorf("%w withdrawal: only a release keeps a name closed or cancels: set Released", ErrInvalid)
	case r.Released:
		return nil
	}
	return r.Proposer.check("withdrawal")
}

func (p Proposer) check(what string) error {
	if lockinfo.LeaseID(p).Valid() {
		return nil
	}
	return fmt.Errorf("%w %s: its proposer is %q: want the 32 hexadecimal digits that the engine has drawn (driver.NewProposer)", ErrInvalid, what, p)
}
