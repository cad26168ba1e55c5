//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package show

import "golang.org/x/sys/unix"

const (
	getAttributes = unix.TIOCGETA
	setAttributes = unix.TIOCSETA
)
