//go:build unix

package keeper

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// checkPeer returns an error unless the process at the other end belongs to this user, as far as
// the system reports that.
func checkPeer(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var uid int
	var asked error
	if err := raw.Control(func(fd uintptr) { uid, asked = peerUID(int(fd)) }); err != nil || asked != nil {
		return cmp.Or(err, asked)
	}
	if uid != os.Geteuid() {
		return fmt.Errorf("it belongs to another user (uid %d)", uid)
	}
	return nil
}

// isTemporary reports whether a later Accept may succeed.
func isTemporary(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}
