package holdfast

import (
	"syscall"
	"time"
	"unsafe"
)

const clockBoottime = 7 // CLOCK_BOOTTIME of linux/time.h

// systemBootClock returns bootClock, or noBootClock if time.Now is virtual, as
// it is in a testing/synctest bubble: the two would not count the same time.
func systemBootClock() func() time.Duration {
	var real syscall.Timeval
	if err := syscall.Gettimeofday(&real); err != nil || time.Since(time.Unix(real.Unix())).Abs() > time.Hour {
		return noBootClock
	}
	return bootClock
}

// bootClock reads CLOCK_BOOTTIME, which the standard library does not offer:
// time.Now stops while the machine is suspended (golang/go#24595). It returns
// 0, which switches the comparison off, if the kernel does not know it.
func bootClock() time.Duration {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
