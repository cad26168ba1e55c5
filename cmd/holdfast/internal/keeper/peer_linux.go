package keeper

import "golang.org/x/sys/unix"

// peerUID returns the user of the process at the other end.
func peerUID(fd int) (uid int, err error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(c.Uid), nil
}
