package onefile

import "golang.org/x/sys/unix"

// FileSystem returns the type of the file system of path, as mount shows it.
func FileSystem(path string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(stat.Fstypename[:]), nil
}
