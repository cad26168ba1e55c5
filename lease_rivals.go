package holdfast

import "fmt"

// rivals are the leases that a client trusts and that were granted as exclusive
// ones, by name. A store may lose a lease, or break it, and grant the
// lock again before the holder learns of it. Where both holders share a client,
// the tokens show at once which lease is the later one, even if the earlier one
// was downgraded since. leaseKeeper.mu guards it.
type rivals map[string]*Lease

// errOvertaken is the cause of the loss of the earlier lease.
var errOvertaken = fmt.Errorf("%w: this client has a later lease of the name, with a greater token", ErrLost)

// enter notes a lease that was granted, unless ahead is not nil: a lease of the
// name with a greater token, which is trusted already. The other result is a lease with a
// smaller token, which has to end. Other modes than Exclusive have no rivals.
func (r rivals) enter(l *Lease) (behind, ahead *Lease) {
	if l.asked != Exclusive {
		return nil, nil
	}
	other := r[l.name]
	if other != nil && other.heldAt(l.client.now()) {
		if other.token > l.token {
			return nil, other
		}
		behind = other
	}
	r[l.name] = l
	return behind, nil
}

// leave forgets a lease that has ended.
func (r rivals) leave(l *Lease) {
	if r[l.name] == l {
		delete(r, l.name)
	}
}
