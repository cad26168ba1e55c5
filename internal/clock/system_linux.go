package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// Clock IDs from linux/time.h.
const (
	clockMonotonicRaw = 4
	clockBoottime     = 7
)

// System returns the boot-time clock and the raw clock, which is not slewed. In a testing/synctest
// bubble it returns None for both: time.Now is virtual there, and the clocks would not match it.
func System() (boot, raw func() time.Duration) {
	var real syscall.Timeval
	if err := syscall.Gettimeofday(&real); err != nil || time.Since(time.Unix(real.Unix())).Abs() > time.Hour {
		return None, None
	}
	return func() time.Duration { return readClock(clockBoottime) }, func() time.Duration { return readClock(clockMonotonicRaw) }
}

// readClock reads CLOCK_BOOTTIME or CLOCK_MONOTONIC_RAW, which the standard library does
// not offer: time.Now stops while the machine is suspended (golang/go#24595), and time
// services slew it. If the kernel does not have the clock it returns 0, which turns the
// comparison off.
func readClock(id uintptr) time.Duration {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
