package sqlitelock

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// bind creates the file over, and mounts file on it. It returns "bound" or the text of the error.
func bind(file, over string) string {
	err := os.WriteFile(over, nil, 0o600)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err == nil {
		err = unix.Mount(file, over, "", unix.MS_BIND, "")
	}
	if err != nil {
		return err.Error()
	}
	return "bound"
}

// ownMounts returns the attributes of a process with mounts of its own, which runs as root or as
// the root of a user namespace.
func ownMounts() *syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	}
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWNS | unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// TestBindMountOfTheFile checks that Open refuses a database file that is itself a mount point, as
// in a container. By its first path, the same process finds the lock held. The holder's lease
// stays.
func TestBindMountOfTheFile(t *testing.T) {
	other, err := spawnWith(t, ownMounts(), "rival", "")
	if err != nil {
		t.Logf("NOT TRIED: this machine starts no process with mounts of its own (%v): run the test as root, or allow user namespaces", err)
		return
	}
	seen := map[string]int{}
	for range rounds {
		e := open(t, filepath.Join(t.TempDir(), "locks.db"))
		req := drivertest.Request("t", time.Hour)
		drivertest.Granted(t, e, req)
		if answer := other.answer("bind " + e.path); answer != "bound" {
			t.Logf("NOT TRIED: this machine does not let its own root mount a file (%s): run the test as root", answer)
			return
		}
		seen[other.tries(e.path+"2")]++
		seen[other.tries(e.path)]++
		extend(t, e, req)
		check(t, e.Close())
	}
	other.end()
	t.Logf("the rival: %v", seen)
	if seen["invalid"] != rounds || seen["held"] != rounds {
		t.Errorf("the rival: %v, want %d invalid and %d held", seen, rounds, rounds)
	}
}
