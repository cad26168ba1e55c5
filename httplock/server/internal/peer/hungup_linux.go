package peer

import (
	"encoding/binary"
	"syscall"
)

// established is the state of a TCP connection that neither end has closed: the number in
// linux/tcp.h.
const established = 1

func hungUp(fd int) bool {
	// The state is the first byte of tcp_info. Unread data, such as the close_notify of
	// TLS, do not hide it.
	if info, err := syscall.GetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_INFO); err == nil {
		var first [4]byte
		binary.NativeEndian.PutUint32(first[:], uint32(info))
		return first[0] != established
	}
	var one [1]byte
	n, _, err := syscall.Recvfrom(fd, one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return err == nil && n == 0
}
