package clock

import (
	"sync/atomic"
	"time"
)

// For how long, on the monotonic clock, readings of other clocks are used again.
const (
	// Fresh is short enough: a machine that is suspended stops its processes, its devices and all processors
	// but one before its clocks, and starts them again afterwards: no two instants of one
	// process that are so close together have a suspension between them. It is also far
	// less than the pause between a look at the clock and what follows, which goes
	// unnoticed in any case; see holdfast.Lease.Valid.
	Fresh = 100 * time.Microsecond
	// The monotonic clock is slewed by a tenth at most, so that it loses half a
	// millisecond at most meanwhile: the margin of a lease has room for that.
	slewFresh = 5 * time.Millisecond
)

// A Reader tells the time since boot as no time service slews it. It counts while
// the machine is suspended, as the boot-time clock does, and at the rate of the raw
// clock, where there is one. To read either is a call of the kernel, three of which
// would take longer than all the rest of an acquire and a release in memory; by how much
// the boot-time clock is ahead of the monotonic clock changes only in a suspension, and
// by how much the raw clock is, slowly.
type Reader struct {
	clock func() time.Duration // 0 where the system has no such clock
	raw   func() time.Duration // does not count in a suspension; 0 where the system has no such clock
	fresh time.Duration        // Fresh; in tests 0, for both clocks
	began time.Time
	read  atomic.Int64 // when clock was last read, since began
	ahead atomic.Int64 // by how much it was ahead of the time since began; never less than before

	rawRead  atomic.Int64  // when raw was last read, since began
	rawAhead atomic.Int64  // by how much it was ahead of the time since began
	rawFirst time.Duration // the same at the first reading
}

// Init sets the clocks. fresh is Fresh, or 0 in tests.
func (b *Reader) Init(clock, raw func() time.Duration, fresh time.Duration) {
	b.clock, b.raw, b.fresh = clock, raw, fresh
	b.ahead.Store(int64(clock()))
	b.began = time.Now() // after what was read
	b.read.Store(-int64(time.Hour))
	if b.rawFirst = raw(); b.rawFirst == 0 {
		b.raw = nil
	}
	b.rawFirst -= time.Since(b.began)
	b.rawAhead.Store(int64(b.rawFirst))
	b.rawRead.Store(-int64(time.Hour))
}

// At returns the time at an Instant that the monotonic clock has just shown, or 0.
// INVARIANT I3: it is never later than what the clock shows when at returns, so that a
// deadline which counts from it is none too late.
func (b *Reader) At(mono time.Time) time.Duration {
	since := mono.Sub(b.began)
	if since-time.Duration(b.read.Load()) >= b.fresh && !b.look() {
		return 0
	}
	return since + time.Duration(b.ahead.Load()) + time.Duration(b.rawAhead.Load()) - b.rawFirst
}

// look reads the clocks. It reports false if there is no boot-time clock. A pause between
// two readings must not look like a suspension, neither now nor when the next reading has
// none: one with a long pause is repeated, for which three times is often enough.
func (b *Reader) look() bool {
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
		if now-before < Fresh {
			b.read.Store(int64(now)) // after what was read
			b.lookRaw(now)
			break
		}
	}
	return true // if all were slow, the next look is soon
}

// lookRaw reads the raw clock, if that was not done lately.
func (b *Reader) lookRaw(now time.Duration) {
	if b.raw == nil || b.fresh > 0 && now-time.Duration(b.rawRead.Load()) < slewFresh {
		return
	}
	for range 3 {
		before := time.Since(b.began)
		raw := b.raw()
		now = time.Since(b.began)
		// It may be less than before, if the monotonic clock is slewed forward.
		b.rawAhead.Store(int64(raw - now))
		if now-before < Fresh {
			b.rawRead.Store(int64(now)) // after what was read
			break
		}
	}
}
