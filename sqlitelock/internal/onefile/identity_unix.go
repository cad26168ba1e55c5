//go:build linux || darwin

package onefile

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// noFollow makes an open fail at a symbolic link, and not block at a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// links returns how many names a file has.
func links(info fs.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Nlink) } //nolint:unconvert // 16 bits on some systems

// OwnerOf returns the user ID of a file.
func OwnerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// GroupOf returns the group ID of a file.
func GroupOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Gid) }

// InodeOf returns the number of a file on its file system.
func InodeOf(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// MayUse fails unless this user may read and write the file or directory. It does not open the
// file, because closing it would drop SQLite's file locks.
func MayUse(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}
