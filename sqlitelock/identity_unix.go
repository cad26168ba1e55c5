//go:build unix

package sqlitelock

import (
	"io/fs"
	"syscall"
)

// noFollow makes an open fail at a symbolic link, and not wait at a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// links returns how many names a file has.
func links(info fs.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Nlink) } //nolint:unconvert // 16 bits on some systems

// ownerOf returns the ID of the user whom a file belongs to.
func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// groupOf returns the ID of the group that a file belongs to.
func groupOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Gid) }

// inodeOf returns the number of a file on its file system.
func inodeOf(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }
