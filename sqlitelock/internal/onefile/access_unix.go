//go:build linux || darwin

package onefile

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// MayUse fails unless this user may read and write the file or directory. The
// file is not opened to find out: see the package comment on closing it.
func MayUse(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}
