package redislock

import "syscall"

// segment is what a packet can carry on every IPv6 path: 1280 bytes, less tunnels and overlays of
// the usual sizes.
const segment = 1220

// smallSegments limits the segments of a connection in both directions. If a path carries less than
// its ends believe and no router reports it, small requests arrive, but a renewal of a hundred
// leases in one packet never does. Requests are small, so the limit costs nothing. If the system
// refuses the option, the connection works without it.
func smallSegments(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, segment)
	})
}
