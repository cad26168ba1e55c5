package peer

import (
	"net"
	"syscall"
)

// HungUp reports whether the other end of conn has certainly closed it. It queries the
// system, and so knows at once, even before the next read.
func HungUp(conn net.Conn) bool {
	gone := false
	if raw := rawOf(conn); raw != nil {
		_ = raw.Control(func(fd uintptr) { gone = hungUp(int(fd)) }) // fails if we have closed conn
	}
	return gone
}

// rawOf gives access to the file descriptor of conn. It returns nil if conn has none.
func rawOf(conn net.Conn) syscall.RawConn {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
