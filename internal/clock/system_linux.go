package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// Of linux/time.h.
const (
	clockMonotonicRaw = 4
	clockBoottime     = 7
)

// System returns the boot-time clock and the raw one, which nothing slews, or two
// times None if time.Now is virtual, in a testing/synctest bubble: they
// would not count the same time.
func System() (boot, raw func() time.Duration) {
	var real syscall.Timeval
	if err := syscall.Gettimeofday(&real); err != nil || time.Since(time.Unix(real.Unix())).Abs() > time.Hour {
		return None, None
	}
	return func() time.Duration { return readClock(clockBoottime) }, func() time.Duration { return readClock(clockMonotonicRaw) }
}

// readClock reads CLOCK_BOOTTIME or CLOCK_MONOTONIC_RAW, which the standard library does
// not offer: time.Now stops while the machine is suspended (golang/go#24595), and time
// services slew it. It returns 0, which switches the comparison off, if the kernel does
// not know the clock.
func readClock(id uintptr) time.Duration {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
