//go:build unix

package redislock

import (
	"crypto/tls"
	"net"
	"syscall"
)

// A peeker checks whether a connection is open and has nothing to read. It consumes no input, and
// does not block.
type peeker struct {
	raw   syscall.RawConn
	peek  func(fd uintptr) // made once, so that isQuiet allocates nothing
	first [1]byte
	quiet bool
}

// newPeeker returns nil if conn has no socket.
func newPeeker(conn net.Conn) *peeker {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	p := &peeker{raw: raw}
	p.peek = func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), p.first[:], syscall.MSG_PEEK)
		p.quiet = err == syscall.EAGAIN || err == syscall.EINTR
	}
	return p
}

// isQuiet reports false if the peer has closed the connection or sent something, such as the close
// alert of TLS.
func (p *peeker) isQuiet() bool {
	return p == nil || p.raw.Control(p.peek) == nil && p.quiet
}
