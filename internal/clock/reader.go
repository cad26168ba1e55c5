package clock

import (
	"sync/atomic"
	"time"
)

// How long, on the monotonic clock, a reading of another clock is reused.
const (
	// Fresh is too short to span a suspension. Before a suspension the machine stops its
	// processes, its devices and all processors but one, and only then its clocks; afterwards
	// it starts them in the opposite order. So two instants of one process that are this
	// close have no suspension between them. Fresh is also much shorter than a pause of the
	// process after it has read a clock, which it cannot notice; see holdfast.Lease.Valid.
	Fresh = 100 * time.Microsecond
	// The monotonic clock is slewed by a tenth at most, so it loses half a millisecond at
	// most in slewFresh. The margin of a lease has room for that.
	slewFresh = 5 * time.Millisecond
)

// A Reader returns the time since boot, not slewed by time services. Like the boot-time clock it
// counts while the machine is suspended, but at the rate of the raw clock, if there is one.
//
// Reading either clock is a system call, and three of them would take longer than the rest of an
// acquire and a release in memory. So a Reader reuses the last offsets from the monotonic clock:
// the boot-time clock's changes only in a suspension, and the raw clock's slowly.
type Reader struct {
	clock func() time.Duration // the boot-time clock; returns 0 if the system has none
	raw   func() time.Duration // the raw clock, which stops in a suspension; returns 0 if the system has none
	fresh time.Duration        // Fresh; in tests 0, for both clocks
	began time.Time
	read  atomic.Int64 // when clock was last read, since began
	ahead atomic.Int64 // how far clock was ahead of the time since began; never decreases

	rawRead  atomic.Int64  // when raw was last read, since began
	rawAhead atomic.Int64  // how far raw was ahead of the time since began
	rawFirst time.Duration // rawAhead at the first reading
}

// Init sets the clocks. fresh is Fresh, or 0 in tests.
func (b *Reader) Init(clock, raw func() time.Duration, fresh time.Duration) {
	b.clock, b.raw, b.fresh = clock, raw, fresh
	b.ahead.Store(int64(clock()))
	b.began = time.Now() // after clock was read
	b.read.Store(-int64(time.Hour))
	if b.rawFirst = raw(); b.rawFirst == 0 {
		b.raw = nil
	}
	b.rawFirst -= time.Since(b.began)
	b.rawAhead.Store(int64(b.rawFirst))
	b.rawRead.Store(-int64(time.Hour))
}

// At returns the time since boot at mono, a reading of the monotonic clock that was just made. It
// returns 0 if the system has no boot-time clock. INVARIANT I3: the result is never later than the
// clock when At returns, so a deadline that counts from it is not too late.
func (b *Reader) At(mono time.Time) time.Duration {
	since := mono.Sub(b.began)
	if since-time.Duration(b.read.Load()) >= b.fresh && !b.look() {
		return 0
	}
	return since + time.Duration(b.ahead.Load()) + time.Duration(b.rawAhead.Load()) - b.rawFirst
}

// look reads the clocks. It returns false if there is no boot-time clock. A pause of the process
// between two readings must not look like a suspension, now or at the next look. So look repeats a
// reading with a long pause, up to three times in all.
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
			b.read.Store(int64(now)) // after ahead is stored
			b.lookRaw(now)
			break
		}
	}
	return true // if all readings were slow, the next call of At reads again
}

// lookRaw reads the raw clock, unless it was read within slewFresh.
func (b *Reader) lookRaw(now time.Duration) {
	if b.raw == nil || b.fresh > 0 && now-time.Duration(b.rawRead.Load()) < slewFresh {
		return
	}
	for range 3 {
		before := time.Since(b.began)
		raw := b.raw()
		now = time.Since(b.began)
		// It may decrease, if the monotonic clock is slewed forward.
		b.rawAhead.Store(int64(raw - now))
		if now-before < Fresh {
			b.rawRead.Store(int64(now)) // after rawAhead is stored
			break
		}
	}
}
