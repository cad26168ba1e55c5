//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package show

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Keys makes a terminal pass on each key when it is pressed, without drawing it. Keys that send
// signals, such as Ctrl-C, still do. The caller must call restore. In the background Keys stops
// this process, like every change of a terminal.
func Keys(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getAttributes)
	if err != nil {
		return nil, err
	}
	keys := *before
	keys.Lflag &^= unix.ICANON | unix.ECHO
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	if err := setTermios(fd, &keys); err != nil {
		return nil, err
	}
	return func() { _ = setTermios(fd, before) }, nil // it fails if the terminal is gone
}

// setTermios sets the attributes of a terminal. Ctrl-Z and fg may interrupt it.
func setTermios(fd int, to *unix.Termios) error {
	for {
		if err := unix.IoctlSetTermios(fd, setAttributes, to); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
