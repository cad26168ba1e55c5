package onefile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMountedType(t *testing.T) {
	mounts := parseMounts(`22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:44 / /home rw - nfs4 server:/home rw
31 22 0:45 / /homestead rw - btrfs /dev/sdb rw
`)
	for _, c := range []struct{ device, path, want string }{
		{"8:1", "/home/locks.db", "ext4"},
		{"0:44", "/x", "nfs4"},
		{"0:99", "/home/locks.db", "nfs4"},
		{"0:99", "/homestead/locks.db", "btrfs"},
		{"0:99", "/var/locks.db", "ext4"},
	} {
		if got := mountedType(mounts, c.device, c.path); got != c.want {
			t.Errorf("%s at %s: %q, want %q", c.path, c.device, got, c.want)
		}
	}
	if got := mountedType(nil, "8:1", "/"); got != "" {
		t.Errorf("without mounts: %q", got)
	}
}

// TestFileSystem checks that FileSystem returns the same type as the list of mounts.
func TestFileSystem(t *testing.T) {
	all, err := mounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/proc", os.TempDir()} {
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil {
			t.Fatal(err)
		}
		want := mountedType(all, fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev)), path)
		if kind, err := FileSystem(path); kind != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", path, kind, err, want)
		}
	}
}

// TestMountPoints checks that mount points are found in a list of mounts, and on this system.
func TestMountPoints(t *testing.T) {
	mounts := parseMounts("" +
		"22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n" +
		"30 22 8:1 /x/locks.db /data/locks.db rw,relatime - ext4 /dev/sda1 rw\n" +
		"31 22 8:1 /y /my\\040data rw - ext4 /dev/sda1 rw\n")
	for path, want := range map[string]bool{
		"/data/locks.db": true, "/my data": true, "/data": false, "/data/locks.db2": false, "/x/locks.db": false,
	} {
		if isMounted(mounts, path) != want {
			t.Errorf("%s is a mount point: %t, want %t", path, !want, want)
		}
	}
	for _, path := range []string{"/", "/proc"} {
		if mounted, err := isMountPoint(path); err != nil || !mounted {
			t.Errorf("%s is a mount point: %t, %v", path, mounted, err)
		}
	}
	if file, err := isMountPoint(filepath.Join(t.TempDir(), "..")); err != nil || file {
		t.Errorf("a directory is a mount point: %t, %v", file, err)
	}
}
