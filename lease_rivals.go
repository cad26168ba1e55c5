package holdfast

import "fmt"

// rivals has the leases that a client trusts and that were granted as exclusive, by name. A store
// may lose a lease, or break it, and grant the lock again before the holder learns of that. If
// both holders share a client, the tokens show at once which lease is the later one. That holds
// even if the earlier one was downgraded since. leaseKeeper.mu guards it.
type rivals map[string]*Lease

// errOvertaken is the cause of the loss of the earlier lease.
var errOvertaken = fmt.Errorf("%w: this client has a later lease of the name, with a greater token", ErrLost)

// enter notes a new lease, unless the client trusts a lease of the name with a greater token:
// it then returns that one, as ahead. It returns a trusted lease with a smaller token, which has
// to end, as behind. Only exclusive leases have rivals.
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
