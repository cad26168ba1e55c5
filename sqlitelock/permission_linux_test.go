package sqlitelock

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// asNobody runs f as a user to whom file permissions apply. If the test runs as root, only the
// thread of f becomes another user, and it ends with f.
func asNobody(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			_ = unix.Setfsuid(65534)
		}
		f()
	}()
	<-done
}

func TestNotPermitted(t *testing.T) {
	dir := t.TempDir()
	chmod := func(path string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(filepath.Dir(dir), 0o755)
	locks := func(sub string) string { return filepath.Join(dir, sub, "locks.db") }
	for _, sub := range []string{"closed", "readable", "file", "bell"} {
		check(t, os.Mkdir(filepath.Dir(locks(sub)), 0o700))
		_ = open(t, locks(sub)).Close()
	}
	chmod(filepath.Join(dir, "closed"), 0)
	chmod(filepath.Join(dir, "readable"), 0o555)
	chmod(locks("readable"), 0o666)
	for _, sub := range []string{"file", "bell"} {
		chmod(filepath.Join(dir, sub), 0o777|os.ModeSticky)
		chmod(locks(sub), 0o666)
		chmod(locks(sub)+"-bell", 0o666)
	}
	chmod(locks("file"), 0o444)
	chmod(locks("bell")+"-bell", 0o444)
	chmod(dir, 0o555)
	t.Cleanup(func() {
		for _, d := range []string{dir, filepath.Join(dir, "closed"), filepath.Join(dir, "readable")} {
			_ = os.Chmod(d, 0o755)
		}
	})
	for _, sub := range []string{"", "closed", "readable", "file", "bell"} {
		asNobody(func() {
			e, err := Open(t.Context(), locks(sub), nil)
			wantIs(t, "open of "+sub, err, driver.ErrPermission)
			if err == nil {
				_ = e.Close()
			}
		})
	}
	chmod(locks("file"), 0o666)
	if os.Geteuid() == 0 {
		check(t, os.Chown(filepath.Join(dir, "file"), 65534, -1))
	}
	chmod(filepath.Join(dir, "file"), 0o755)
	asNobody(func() {
		e, err := Open(t.Context(), locks("file"), nil)
		if err != nil {
			t.Errorf("open of what everybody may write: %v", err)
			return
		}
		_ = e.Close()
	})
}

// TestFilesOfAnotherUser checks that the error names the file that this user may not use.
func TestFilesOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	check(t, os.Chmod(filepath.Dir(dir), 0o755))
	check(t, os.Chmod(dir, 0o777|os.ModeSticky))
	path := filepath.Join(dir, "locks.db")
	open(t, path)
	for _, suffix := range []string{"", "-wal", "-shm", "-bell"} {
		check(t, os.Chmod(path+suffix, 0o666))
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-bell"} {
		check(t, os.Chmod(path+suffix, 0o400))
		asNobody(func() {
			_, err := Open(t.Context(), path, nil)
			wantIs(t, "open with "+suffix+" of another user", err, driver.ErrPermission)
			if err == nil || !strings.Contains(err.Error(), path+suffix+":") {
				t.Errorf("%v does not name %s", err, path+suffix)
			}
		})
		check(t, os.Chmod(path+suffix, 0o666))
	}
}

// TestTrapsInSharedDirectories checks that Open refuses files of another user in a directory in
// which every user may create files.
func TestTrapsInSharedDirectories(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("NOT TRIED: only root can make files of two users")
		return
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-bell"} {
		dir := t.TempDir()
		check(t, os.Chmod(filepath.Dir(dir), 0o755))
		check(t, os.Chmod(dir, 0o777|os.ModeSticky))
		path := filepath.Join(dir, "locks.db")
		check(t, os.WriteFile(path+suffix, nil, 0o666))
		check(t, os.Chmod(path+suffix, 0o666))
		check(t, os.Lchown(path+suffix, 1, 1))
		asNobody(func() {
			_, err := Open(t.Context(), path, nil)
			wantIs(t, "open beside "+suffix+" of another user", err, driver.ErrPermission)
		})
	}
}

// TestNewBellIsForTheSameUsers checks that a deleted bell is created again for the users of the
// database, with any umask and by any user.
func TestNewBellIsForTheSameUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	defer unix.Umask(unix.Umask(0o777))
	made := func(mode os.FileMode, owner int) {
		t.Helper()
		e := open(t, path)
		e.bell.Ring([]lockinfo.LeaseID{"x"})
		check(t, e.Close())
		for _, suffix := range []string{"", "-bell", "-alarm"} {
			info, err := os.Lstat(path + suffix)
			check(t, err)
			if info.Mode() != mode || onefile.OwnerOf(info) != owner {
				t.Errorf("%s has mode %s and owner %d, want %s and %d", info.Name(), info.Mode(), onefile.OwnerOf(info), mode, owner)
			}
		}
	}
	owner := os.Geteuid()
	made(0o600, owner)
	if owner == 0 {
		owner = 65534
		check(t, os.Chown(path, owner, owner))
	}
	check(t, os.Chmod(path, 0o660))
	check(t, os.Remove(path+"-bell"))
	check(t, os.Remove(path+"-alarm"))
	made(0o660, owner)
}
