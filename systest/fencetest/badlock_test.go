package fencetest

import (
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A badLock is a lock whose leases are too short for its holders' work. Its tokens grow, as those
// of a real lock do. A holder can continue to work after its lease ended, as with every lock.
type badLock struct {
	ttl time.Duration

	mu     sync.Mutex
	token  uint64
	holder fence.Claim   // nil if the lock is free
	expiry time.Time     // of the holder's lease
	freed  chan struct{} // closed when the holder releases
}

func (l *badLock) acquire() fence.Claim {
	for {
		l.mu.Lock()
		wait := time.Until(l.expiry)
		if l.holder == nil || wait <= 0 {
			l.token++
			l.holder = fence.NewClaim(l.token, lockinfo.NewLeaseID())
			l.expiry = time.Now().Add(l.ttl)
			l.freed = make(chan struct{})
			c := l.holder
			l.mu.Unlock()
			return c
		}
		freed := l.freed
		l.mu.Unlock()
		select {
		case <-freed:
		case <-time.After(wait):
		}
	}
}

// release ends c's lease if it is live.
func (l *badLock) release(c fence.Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == c {
		l.holder = nil
		close(l.freed)
	}
}
