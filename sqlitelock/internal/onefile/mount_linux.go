package onefile

import (
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// isMountPoint reports whether a file is mounted by itself over another file.
func isMountPoint(path string) (bool, error) {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &stat)
	if err == nil && stat.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
	}
	if err != nil && err != unix.ENOSYS && err != unix.EPERM { // as sandboxes do
		return false, &fs.PathError{Op: "statx", Path: path, Err: err}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return isMounted(string(mounts), path), err
}

// isMounted looks for a path among the mount points in the text of
// /proc/self/mountinfo.
func isMounted(mountinfo, path string) bool {
	for line := range strings.Lines(mountinfo) {
		if f := strings.Fields(line); len(f) > 4 && unescape(f[4]) == path {
			return true
		}
	}
	return false
}

// unescape decodes a field of mountinfo.
func unescape(field string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(field)
}
