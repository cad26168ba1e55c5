package supervise

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sysProcAttr asks for a group of its own, and for death with its parent; the
// syscall package covers the case that the parent died before that was set.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes descendants whose parent ends children of this process.
// Without it they would be left to process 1, which in many containers reaps
// nobody: their zombies would keep the group from ever being empty.
func adoptOrphans() {
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// stopSelf stops this process, unless its group is orphaned: the kernel does
// that for SIGTSTP, if its action is the default one. Package signal cannot
// restore the default action of a signal that it has once handled, but all
// zeros is the default action in every layout of the kernel's structure.
//
// The signal goes to the calling thread, so that this thread does not run on
// for a moment until another one has received it.
func stopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var byDefault [8]uint64
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTSTP), uintptr(unsafe.Pointer(&byDefault)), 0, sigsetSize, 0, 0)
	unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGTSTP)
}

// sigsetSize is the size of the kernel's signal set in bytes.
const sigsetSize = 8

// noSuchGroup reports whether err, from kill, says that the group is empty.
func noSuchGroup(err error) bool { return errors.Is(err, unix.ESRCH) }
