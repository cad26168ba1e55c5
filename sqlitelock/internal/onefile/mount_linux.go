package onefile

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A mount is one line of /proc/self/mountinfo.
type mount struct{ device, point, kind string }

func mounts() ([]mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	return parseMounts(string(text)), err
}

func parseMounts(mountinfo string) (all []mount) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
	for line := range strings.Lines(mountinfo) {
		fields, rest, _ := strings.Cut(line, " - ")
		if f, g := strings.Fields(fields), strings.Fields(rest); len(f) > 4 && len(g) > 0 {
			all = append(all, mount{device: f[2], point: unescape(f[4]), kind: g[0]})
		}
	}
	return all
}

// isMountPoint reports whether another file is mounted over the file at path. Linux 5.8 and later
// tell that without a list of all mounts, which is long on a host with containers.
func isMountPoint(path string) (bool, error) {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &s)
	if err == nil && s.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
	}
	all, err := mounts()
	return isMounted(all, path), err
}

func isMounted(all []mount, path string) bool {
	return slices.ContainsFunc(all, func(m mount) bool { return m.point == path })
}

// FileSystem returns the type of the file system of path, as mount shows it. It knows the usual
// types by their numbers.
func FileSystem(path string) (string, error) {
	var about unix.Statfs_t
	if err := unix.Statfs(path, &about); err != nil {
		return "", err
	}
	switch about.Type {
	case unix.XFS_SUPER_MAGIC:
		return "xfs", nil
	case unix.EXT4_SUPER_MAGIC: // also of ext2 and ext3
		return "ext4", nil
	}
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return "", err
	}
	all, err := mounts()
	if err != nil {
		return "", err
	}
	kind := mountedType(all, fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev)), path)
	if kind == "" {
		return "", errors.New("it is not among the mounts")
	}
	return kind, nil
}

// mountedType returns the type of the file system with the given device. A file system may have
// several devices; if none matches, it returns the type of the longest mount point above path.
func mountedType(all []mount, device, path string) (kind string) {
	longest := -1
	for _, m := range all {
		if m.device == device {
			return m.kind
		}
		point := strings.TrimSuffix(m.point, "/")
		if (path == point || strings.HasPrefix(path, point+"/")) && len(point) >= longest {
			longest, kind = len(point), m.kind
		}
	}
	return kind
}
