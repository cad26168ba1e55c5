package keeper

import "golang.org/x/sys/unix"

// peerUID returns the user of the process at the other end.
func peerUID(fd int) (uid int, known bool, err error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, true, err
	}
	return int(c.Uid), true, nil
}
