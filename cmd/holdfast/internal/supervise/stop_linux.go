package supervise

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stopSelf stops this process, unless its process group is orphaned: the kernel makes that
// exception for SIGTSTP with its default action.
//
// The signal goes to the calling thread, so that this thread does not run on for a moment until
// another one has received it.
func stopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	DefaultStop()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTSTP)
}

// DefaultStop restores the default action of SIGTSTP. Package signal cannot do so for a signal
// that it has handled. All zeros mean the default action in every layout of the kernel's
// structure. The caller must have made package signal ignore the signal, or it could not be
// caught again.
func DefaultStop() {
	var byDefault [8]uint64
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTSTP), uintptr(unsafe.Pointer(&byDefault)), 0, sigsetSize, 0, 0)
}

// sigsetSize is the size of the kernel's signal set in bytes.
const sigsetSize = 8
