package onefile

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// FileSystem returns the type of the file system that path is on, as mount shows it.
func FileSystem(path string) (string, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	device := fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))
	kind := mountedType(string(mounts), device, path)
	if kind == "" {
		return "", errors.New("it is not among the mounts")
	}
	return kind, nil
}

// mountedType finds the type in the text of /proc/self/mountinfo: by the
// device, or else, for file systems with several, by the longest mount point
// above path.
func mountedType(mountinfo, device, path string) (kind string) {
	longest := -1
	for line := range strings.Lines(mountinfo) {
		fields, rest, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(fields), strings.Fields(rest)
		if !ok || len(f) < 5 || len(g) < 1 {
			continue
		}
		if f[2] == device {
			return g[0]
		}
		point := strings.TrimSuffix(f[4], "/")
		if (path == point || strings.HasPrefix(path, point+"/")) && len(point) >= longest {
			longest, kind = len(point), g[0]
		}
	}
	return kind
}
