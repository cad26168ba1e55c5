//go:build unix

package caller

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner returns an error if others decide who may use the server, and a warning if
// they can see who may.
func checkOwner(info fs.FileInfo) (warning string, err error) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return "", errors.New("it belongs to another user, who could let everybody in")
	}
	switch mode := info.Mode().Perm(); {
	case mode&0o022 != 0:
		return "", errors.New("others may write it, and so let everybody in: chmod go-w")
	case mode&0o004 != 0:
		return "everybody on this host may read who the callers are: chmod o-r", nil
	}
	return "", nil
}

// keepGroup gives file the group of the one that it replaces, by which the server may read it.
// old is nil if there is none.
func keepGroup(file *os.File, old fs.FileInfo) error {
	if old == nil {
		return nil
	}
	now, err := file.Stat()
	if err != nil {
		return err
	}
	was, ok := old.Sys().(*syscall.Stat_t)
	is, ok2 := now.Sys().(*syscall.Stat_t)
	if !ok || !ok2 || was.Gid == is.Gid {
		return nil
	}
	return file.Chown(-1, int(was.Gid))
}
