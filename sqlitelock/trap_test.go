package sqlitelock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// TestTraps checks that Open refuses a link or a directory in the place of one of the database's
// files, and does not change the link's target.
func TestTraps(t *testing.T) {
	for what, set := range map[string]func(t *testing.T, victim, path string) error{
		"link":     func(_ *testing.T, victim, path string) error { return os.Symlink(victim, path) },
		"hardlink": func(_ *testing.T, victim, path string) error { return os.Link(victim, path) },
		"dir":      func(_ *testing.T, _, path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, suffix := range []string{"-bell", "-wal", "-shm"} {
			t.Run(what+suffix, func(t *testing.T) {
				dir := t.TempDir()
				victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "locks.db")
				check(t, os.WriteFile(victim, []byte("precious"), 0o666))
				check(t, os.Chmod(victim, 0o666))
				check(t, set(t, victim, path+suffix))
				_, err := Open(t.Context(), path, nil)
				wantIs(t, "open", err, driver.ErrInvalid)
				if err == nil || !strings.Contains(err.Error(), path+suffix) {
					t.Errorf("%v does not name %s", err, path+suffix)
				}
				if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
					t.Errorf("the victim is now %q, %v", text, err)
				}
				if _, err := os.Lstat(path); err == nil {
					t.Error("a database was made")
				}
			})
		}
	}
	t.Run("link to nowhere", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "locks.db")
		check(t, os.Symlink("nowhere", path))
		_, err := Open(t.Context(), path, nil)
		wantIs(t, "open", err, driver.ErrInvalid)
		if _, err := os.Stat(path); err == nil {
			t.Error("a database was made")
		}
	})
}

// TestTrapIsSetLater checks that a link that replaces the bell while the database is in use is not
// followed.
func TestTrapIsSetLater(t *testing.T) {
	e := openNew(t)
	other := open(t, e.path)
	victim := filepath.Join(t.TempDir(), "victim")
	check(t, os.WriteFile(victim, []byte("precious"), 0o600))
	check(t, os.Remove(e.bell.Path))
	check(t, os.Symlink(victim, e.bell.Path))
	req, next := drivertest.Request("t", time.Hour), inQueue(drivertest.Request("t", time.Hour), time.Hour)
	drivertest.Granted(t, e, req)
	placed(t, other, next, 1)
	drivertest.Release(t, e, req) // rings for the waiter of the other engine
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("the victim is now %q, %v", text, err)
	}
	drivertest.Granted(t, other, next)
}

// TestOpenDirectories checks that Open refuses a directory that every user may write, unless it has
// the sticky bit.
func TestOpenDirectories(t *testing.T) {
	for mode, want := range map[os.FileMode]error{
		0o700: nil, 0o755: nil, 0o770: nil,
		0o777: driver.ErrInvalid, 0o702: driver.ErrInvalid, 0o777 | os.ModeSticky: nil,
	} {
		dir := t.TempDir()
		check(t, os.Chmod(dir, mode))
		e, err := Open(t.Context(), filepath.Join(dir, "locks.db"), nil)
		wantIs(t, "open in "+mode.String(), err, want)
		if err == nil {
			check(t, e.Close())
		}
	}
}

// TestNetworkFileSystems checks that Open refuses network file systems unless the option
// AllowNetwork is set.
func TestNetworkFileSystems(t *testing.T) {
	for _, c := range []struct {
		kind  string
		allow bool
		want  error
	}{
		{"ext4", false, nil}, {"tmpfs", false, nil}, {"overlay", false, nil}, {"apfs", false, nil}, {"fuseblk", false, nil},
		{"nfs4", false, driver.ErrInvalid}, {"cifs", false, driver.ErrInvalid}, {"9p", false, driver.ErrInvalid},
		{"fuse.sshfs", false, driver.ErrInvalid}, {"virtiofs", false, driver.ErrInvalid}, {"smbfs", false, driver.ErrInvalid},
		{"nfs", true, nil},
	} {
		s := newSetting(newHost("boot").clock())
		s.AllowNetwork = c.allow
		s.fileSystem = func(string) (string, error) { return c.kind, nil }
		path := filepath.Join(t.TempDir(), "locks.db")
		e, err := s.open(t.Context(), path)
		wantIs(t, "open on "+c.kind, err, c.want)
		if err == nil {
			check(t, e.Close())
			continue
		}
		if !strings.Contains(err.Error(), c.kind) || !strings.Contains(err.Error(), "allow_network") {
			t.Errorf("%v does not say what it is on, and what to do", err)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("a database was made on %s", c.kind)
		}
	}
}
