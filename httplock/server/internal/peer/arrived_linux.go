//go:build !386 && !s390x

package peer

import (
	"syscall"
	"unsafe"
)

// arrived returns how many bytes wait for an acknowledgement, and how many were acknowledged
// in all. acked is 0 unless the connection is a TCP connection. ok is false once it is closed.
func arrived(raw syscall.RawConn) (waiting int, acked uint64, ok bool) {
	err := raw.Control(func(fd uintptr) {
		var n int32
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&n)))
		waiting, acked, ok = int(n), ackedBytes(fd), errno == 0
	})
	return waiting, acked, ok && err == nil
}

// ackedBytes returns tcpi_bytes_acked of tcp_info in linux/tcp.h, which kernels before
// 4.1 lack.
func ackedBytes(fd uintptr) uint64 {
	const offset = 120
	var info [offset/8 + 1]uint64
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 || uintptr(size) < unsafe.Sizeof(info) {
		return 0
	}
	return info[offset/8]
}
