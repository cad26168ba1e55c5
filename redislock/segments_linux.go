package redislock

import "syscall"

// segment is what a packet may carry over every path that IPv6 may take, whose
// packets have 1280 bytes, tunnels and overlays of the usual sizes included.
const segment = 1220

// smallSegments limits the segments of a connection in both directions. Where a
// path takes less than its ends believe and nobody says so, small requests get
// through, and the renewal of a hundred leases in one never does. Requests are
// small, so this costs nothing. Where it is refused, the connection is as usual.
func smallSegments(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, segment)
	})
}
