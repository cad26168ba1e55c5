package onefile

import "testing"

func TestMountedType(t *testing.T) {
	const mounts = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:44 / /home rw - nfs4 server:/home rw
31 22 0:45 / /homestead rw - btrfs /dev/sdb rw
`
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
	if got := mountedType("", "8:1", "/"); got != "" {
		t.Errorf("without mounts: %q", got)
	}
}
