//go:build unix

package caller

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner returns an error if other users can change the file of callers, and a warning if
// they can read it.
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

// keepGroup gives file the group of the file that it replaces, because the server may need that
// group to read it. old is nil if there is no such file.
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
