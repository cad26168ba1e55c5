//go:build unix

package store

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/holdfast-locks/holdfast/driver"
)

// dontWait keeps open from waiting for the writer of a pipe.
const dontWait = syscall.O_NONBLOCK

// checkOwner refuses a file of another user than root or this one: its owner can change it at any
// time.
func checkOwner(path string, info fs.FileInfo) error {
	owner, me := ownerOf(info), os.Geteuid()
	if owner == 0 || owner == me {
		return nil
	}
	return fmt.Errorf("%w configuration: %s belongs to %s, who could have %s use another store: "+
		"give it to root or to %s (chown), or name a store with --store", driver.ErrInvalid, path, nameOf(owner), nameOf(me), nameOf(me))
}

// checkWriters refuses a file that others may write.
func checkWriters(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	return fmt.Errorf("%w configuration: %s can be written by others, who could have you use another store: chmod go-w %s",
		driver.ErrInvalid, path, path)
}

// checkReaders refuses a file with a password that others may read. A group may read
// a file of root, so that its members can share one.
func checkReaders(path string, info fs.FileInfo) error {
	refused, others := fs.FileMode(0o044), "go"
	if ownerOf(info) == 0 {
		refused, others = 0o004, "o"
	}
	if info.Mode().Perm()&refused == 0 {
		return nil
	}
	return fmt.Errorf("%w configuration: %s has credentials in its URL, or a URL that is not valid, and others may read it: chmod %s-r %s", driver.ErrInvalid, path, others, path)
}

// ownerOf returns the user ID of a file's owner.
func ownerOf(info fs.FileInfo) int {
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// nameOf returns the name of a user, or the user ID if there is none.
func nameOf(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid " + id
}
