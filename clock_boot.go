package holdfast

import (
	"sync/atomic"
	"time"
)

// bootFresh is for how long, on the monotonic clock, a reading of the boot-time clock
// is used again. A machine that is suspended stops its processes, its devices and all
// processors but one before its clocks, and starts them again afterwards: no two
// instants of one process that are so close together have a suspension between them.
// It is also far less than the pause between a look at the clock and what follows,
// which goes unnoticed in any case; see Lease.Valid.
const bootFresh = 100 * time.Microsecond

// A bootReader tells the boot-time clock's time. To read it is a call of the kernel,
// three of which would take longer than all the rest of an acquire and a release in
// memory; by how much it is ahead of the monotonic clock changes only in a
// suspension.
type bootReader struct {
	clock func() time.Duration // 0 where the system has no such clock
	fresh time.Duration        // bootFresh
	began time.Time
	read  atomic.Int64 // when it was last read, since began
	ahead atomic.Int64 // by how much it was ahead of the time since began; never less than before
}

func (b *bootReader) init(clock func() time.Duration, fresh time.Duration) {
	b.clock, b.fresh = clock, fresh
	b.ahead.Store(int64(clock()))
	b.began = time.Now() // after what was read
	b.read.Store(-int64(time.Hour))
}

// at returns the time at an instant that the monotonic clock has just shown, or 0.
// INVARIANT I3: it is never later than what the clock shows when at returns, so that a
// deadline which counts from it is none too late.
func (b *bootReader) at(mono time.Time) time.Duration {
	since := mono.Sub(b.began)
	if since-time.Duration(b.read.Load()) >= b.fresh && !b.look() {
		return 0
	}
	return since + time.Duration(b.ahead.Load())
}

// look reads the clock. It reports false if there is none. A pause between the two
// readings must not look like a suspension, neither now nor when the next reading has
// none: one with a long pause is repeated, for which three times is often enough.
func (b *bootReader) look() bool {
	for range 3 {
		before := time.Since(b.began)
		boot := b.clock()
		if boot == 0 {
			return false
		}
		now := time.Since(b.began)
		for ahead := int64(boot - now); ; {
			old := b.ahead.Load()
			if ahead <= old || b.ahead.CompareAndSwap(old, ahead) {
				break
			}
		}
		if now-before < bootFresh {
			b.read.Store(int64(now)) // after what was read
			break
		}
	}
	return true // if all were slow, the next look is soon
}
