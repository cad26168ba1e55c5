package holdfast

import (
	"errors"
	"fmt"
)

// ErrLeft is the cause, together with ErrLost, of the end of the context of a lease
// that was left.
var ErrLeft = errors.New("left for another process to adopt")

var errLeft = fmt.Errorf("%w: %w", ErrLost, ErrLeft)

// Leave ends the lease for this process but not in the store, so that another one can
// adopt it by the Handle: see Client.Adopt. Context ends, with a cause that is
// ErrLeft, and from now on nothing is sent for the lease: no renewal, and no release
// by Release, which then returns nil, or by Client.Close. A renewal that is under way
// may still lengthen it. Unless a process adopts it, it lasts until its expiry.
//
// A lease that was handed over by another holder has only a few seconds at first;
// see AcquireOptions.WholeTTL. The work under the lease must have stopped before, or
// go on in the process that adopts it.
//
// Leave sends nothing. It returns ErrLost if the lease was lost or released before, and
// the same Handle if it was left before.
func (l *Lease) Leave() (Handle, error) {
	l.validAt(l.client.now()) // if the deadline has passed unnoticed, the lease is lost
	l.mu.Lock()
	was := l.state
	if was == stateHeld {
		// INVARIANT I9: as after Release, no renewal begins in this state.
		l.state, l.lost = stateReleased, errLeft
		l.tellLeftLocked()
	}
	l.mu.Unlock()
	if was != stateHeld {
		if err := l.lostError(); !errors.Is(err, ErrLeft) {
			return Handle{}, opError("leave", l.name, err)
		}
		return l.handle(), nil
	}
	l.client.leases.remove(l)
	l.endContext()
	l.endTurns()
	return l.handle(), nil
}
