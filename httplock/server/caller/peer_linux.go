package caller

import "syscall"

// peerUser asks the kernel for the user at the other end of conn.
func peerUser(conn syscall.Conn) (uid uint32, ok bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	var cred *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || failed != nil {
		return 0, false
	}
	return cred.Uid, true
}
