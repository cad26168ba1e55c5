//go:build darwin || freebsd

package keeper

import "golang.org/x/sys/unix"

// peerUID returns the user of the process at the other end.
func peerUID(fd int) (uid int, err error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(c.Uid), nil
}
