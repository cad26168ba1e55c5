package supervise

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stopSelf stops this process, unless its group is orphaned: the kernel does
// that for SIGTSTP, if its action is the default one.
//
// The signal goes to the calling thread, so that this thread does not run on
// for a moment until another one has received it.
func stopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	DefaultStop()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTSTP)
}

// DefaultStop restores the default action of SIGTSTP. Package signal cannot, for
// a signal that it has once handled, but all zeros is the default action in every
// layout of the kernel's structure. Package signal must have been told to ignore
// the signal, or it could not be caught again.
func DefaultStop() {
	var byDefault [8]uint64
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTSTP), uintptr(unsafe.Pointer(&byDefault)), 0, sigsetSize, 0, 0)
}

// sigsetSize is the size of the kernel's signal set in bytes.
const sigsetSize = 8
