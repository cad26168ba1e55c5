package sqlitelock

import "golang.org/x/sys/unix"

// fileSystem returns the type of the file system that path is on, as mount
// shows it.
func fileSystem(path string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(stat.Fstypename[:]), nil
}
