package onefile

import (
	"path/filepath"
	"testing"
)

// TestMountPoints are found in the text of the system as well.
func TestMountPoints(t *testing.T) {
	const mounts = "" +
		"22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n" +
		"30 22 8:1 /x/locks.db /data/locks.db rw,relatime - ext4 /dev/sda1 rw\n" +
		"31 22 8:1 /y /my\\040data rw - ext4 /dev/sda1 rw\n"
	for path, want := range map[string]bool{
		"/data/locks.db": true, "/my data": true, "/data": false, "/data/locks.db2": false, "/x/locks.db": false,
	} {
		if isMounted(mounts, path) != want {
			t.Errorf("%s is a mount point: %t, want %t", path, !want, want)
		}
	}
	if root, err := isMountPoint("/"); err != nil || !root {
		t.Errorf("/ is a mount point: %t, %v", root, err)
	}
	if file, err := isMountPoint(filepath.Join(t.TempDir(), "..")); err != nil || file {
		t.Errorf("a directory is a mount point: %t, %v", file, err)
	}
}
