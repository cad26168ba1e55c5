package peer

import (
	"net"
	"syscall"
)

// HungUp reports whether the other end of conn has certainly closed it. It queries the
// system, and so knows at once, even before the next read.
func HungUp(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	_ = raw.Control(func(fd uintptr) { gone = hungUp(int(fd)) }) // fails if we have closed conn
	return gone
}
