//go:build unix

package httplock

import (
	"net"
	"syscall"
)

// systemTells returns a function that reads without waiting. Between two requests there is
// nothing to read, unless the server has closed the connection.
func systemTells(c net.Conn) (tells func() bool) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return func() (open bool) {
		err := raw.Read(func(fd uintptr) bool {
			var one [1]byte
			_, err := syscall.Read(int(fd), one[:])
			open = err == syscall.EAGAIN || err == syscall.EINTR
			return true
		})
		return err == nil && open
	}
}
