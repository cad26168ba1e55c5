//go:build unix

package sqlitelock

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// Two of these users are members of the group, and one is not. None of them needs an account.
const (
	theGroup    = 54321
	firstMember = 54001
	otherMember = 54002
	stranger    = 54003
)

// needsRoot reports whether the test can run: only root can make a system store and start processes
// of other users.
func needsRoot(t *testing.T) bool {
	t.Helper()
	// In a user namespace root may be unable to become other users, and may not own /.
	top, err := os.Stat("/")
	if err != nil || onefile.OwnerOf(top) != 0 || os.Geteuid() != 0 || os.Chown(t.TempDir(), firstMember, theGroup) != nil {
		t.Log("NOT TRIED: only root can make a system store, and become its members: run the tests of this package with sudo")
		return false
	}
	return true
}

// as returns the attributes of a process of another user. One member has the group as its main
// group, the other as a further one.
func as(user uint32) *syscall.SysProcAttr {
	c := &syscall.Credential{Uid: user, Gid: user}
	switch user {
	case firstMember:
		c.Gid = theGroup
	case otherMember:
		c.Groups = []uint32{theGroup}
	}
	return &syscall.SysProcAttr{Credential: c}
}

// spawnAs is spawn for another user.
func spawnAs(t *testing.T, user uint32, role, path string, more ...string) *child {
	t.Helper()
	c, err := spawnWith(t, as(user), role, path, more...)
	check(t, err)
	return c
}

// programFor returns the test's program, or a copy that every user may run.
func programFor(t testing.TB, attr *syscall.SysProcAttr) string {
	t.Helper()
	if attr == nil || attr.Credential == nil {
		return os.Args[0]
	}
	path := filepath.Join(publicDir(t), "program")
	if os.Link(os.Args[0], path) == nil {
		return path
	}
	from, err := os.Open(os.Args[0])
	check(t, err)
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	check(t, err)
	_, err = io.Copy(to, from)
	check(t, err)
	check(t, to.Chmod(0o755))
	check(t, to.Close())
	return path
}

// publicDir returns a temporary directory that all users may search.
func publicDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.Chmod(dir, 0o755))
	check(t, os.Chmod(filepath.Dir(dir), 0o755))
	return dir
}

// makeSystem makes a system store and returns its path.
func makeSystem(t testing.TB) string {
	t.Helper()
	path := filepath.Join(publicDir(t), "holdfast", "locks.db")
	made, err := MakeSystem(t.Context(), path, theGroup)
	if err != nil || !made {
		t.Fatalf("made %t, error %v", made, err)
	}
	return path
}

// look describes a file in one line.
func look(t testing.TB, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	check(t, err)
	return info.Mode().String() + " " + strconv.Itoa(onefile.OwnerOf(info)) + ":" + strconv.Itoa(onefile.GroupOf(info)) + " " + strconv.FormatUint(onefile.InodeOf(info), 10)
}

// inventory describes all files in a store's directory and in the directory above, one in a line.
func inventory(t testing.TB, path string) string {
	t.Helper()
	dir := filepath.Dir(path)
	var lines []string
	for _, d := range []string{filepath.Dir(dir), dir} {
		entries, err := os.ReadDir(d)
		check(t, err)
		for _, e := range entries {
			lines = append(lines, e.Name()+" "+look(t, filepath.Join(d, e.Name())))
		}
	}
	return strings.Join(lines, "\n")
}

// TestMakeSystem checks that the files belong to root and to the group, whatever the umask is, and
// that making the store again changes nothing.
func TestMakeSystem(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	for _, mask := range []int{0, 0o022, 0o777} {
		dir := publicDir(t)
		path := filepath.Join(dir, "holdfast", "locks.db")
		if mask != 0 { // an empty directory of root is accepted
			check(t, os.Mkdir(filepath.Dir(path), 0o755))
		}
		before := syscall.Umask(mask)
		made, err := MakeSystem(t.Context(), path, theGroup)
		syscall.Umask(before)
		if err != nil || !made {
			t.Fatalf("made %t, error %v", made, err)
		}
		for file, want := range map[string]string{
			"": "-rw-rw---- 0:54321", "-wal": "-rw-rw---- 0:54321", "-shm": "-rw-rw---- 0:54321", "-bell": "-rw-rw---- 0:54321",
			"-alarm": "-rw-rw---- 0:54321", "-journal": "-rw-r----- 0:54321", "/..": "dgtrwxrwx--- 0:54321",
		} {
			if got := look(t, filepath.Clean(path+file)); !strings.HasPrefix(got, want+" ") {
				t.Errorf("umask %o: %q is %s, want %s", mask, file, got, want)
			}
		}
		first := inventory(t, path)
		if n := strings.Count(first, "\n"); n != 6 {
			t.Errorf("there are %d lines, want 7:\n%s", n+1, first)
		}
		made, err = MakeSystem(t.Context(), path, theGroup)
		if again := inventory(t, path); err != nil || made || again != first {
			t.Errorf("again: made %t, %v\n%s\nis now\n%s", made, err, first, again)
		}
		_, err = MakeSystem(t.Context(), path, theGroup+1)
		wantIs(t, "for another group", err, driver.ErrInvalid)
	}
	for _, path := range []string{"locks.db", "/locks.db", filepath.Join(t.TempDir(), "no", "such", "locks.db")} {
		_, err := MakeSystem(t.Context(), path, theGroup)
		wantIs(t, "make "+path, err, driver.ErrInvalid)
	}
}

// TestSystemStoreKeepsItsFiles checks that the files stay as root has made them, whichever user is
// the last to close the store.
func TestSystemStoreKeepsItsFiles(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	path := makeSystem(t)
	before := inventory(t, path)
	for _, user := range []uint32{firstMember, 0, otherMember, 0, firstMember} {
		if user == 0 {
			e := open(t, path)
			drivertest.Cycle(t, e, "mine")
			if lock, err := e.Inspect(t.Context(), "mine"); err != nil || lock.LastToken == 0 {
				t.Errorf("%+v, %v", lock, err)
			}
			check(t, e.Close())
		} else {
			member := spawnAs(t, user, "rival", "")
			if answer := member.tries(path); answer != "granted" && answer != "held" {
				t.Fatalf("a member: %s", answer)
			}
			member.end()
		}
		if after := inventory(t, path); after != before {
			t.Fatalf("after user %d:\n%s\nwas\n%s", user, after, before)
		}
	}
}

// TestSystemStoreMakesNoFiles checks that a process does not make a bell or an alarm again that
// root has deleted, because the process's user would own the file.
func TestSystemStoreMakesNoFiles(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	e := open(t, makeSystem(t))
	check(t, os.Remove(e.bell.Path))
	check(t, os.Remove(e.alarm.Path))
	e.bell.Ring([]lockinfo.LeaseID{lockinfo.NewLeaseID()})
	e.alarm.Ring([]lockinfo.LeaseID{lockinfo.NewLeaseID()})
	if onefile.Exists(e.bell.Path) || onefile.Exists(e.alarm.Path) {
		t.Error("it was made again")
	}
}

// TestSystemStoreExcludes checks that root and two members of the group exclude each other, and
// that root hands a lock over to a member. Other users cannot use the store.
func TestSystemStoreExcludes(t *testing.T) {
	if !needsRoot(t) {
		return
	}
	path := makeSystem(t)
	root := open(t, path)
	one, two, other := spawnAs(t, firstMember, "rival", ""), spawnAs(t, otherMember, "rival", ""), spawnAs(t, stranger, "rival", "")
	for _, spelling := range []string{path, filepath.Dir(path) + "/../holdfast//locks.db"} {
		req := drivertest.Request("t", time.Hour)
		drivertest.Granted(t, root, req)
		if a, b := one.tries(spelling), two.tries(spelling); a != "held" || b != "held" {
			t.Errorf("of a lock that root holds the members say %s and %s", a, b)
		}
		if answer := other.tries(spelling); !strings.HasPrefix(answer, driver.ErrPermission.Error()) || !strings.Contains(answer, "group 54321") {
			t.Errorf("a stranger is told %q", answer)
		}
		drivertest.Release(t, root, req)
	}
	if answer := one.tries(path); answer != "granted" { // for a minute
		t.Errorf("a free lock: %s", answer)
	}
	if answer := two.tries(path); answer != "held" {
		t.Errorf("of a lock that a member holds the other one says %s", answer)
	}
	drivertest.Held(t, root, drivertest.Request("t", time.Hour))

	waiter := spawnAs(t, otherMember, "wait", path)
	req := drivertest.Request("handed", time.Hour)
	drivertest.Granted(t, root, req)
	waiter.say("acquire handed")
	waiter.expect("held")
	drivertest.Release(t, root, req)
	waiter.expect("granted")
	waiter.end()
}

// expect waits for a line that begins with prefix.
func (c *child) expect(prefix string) {
	c.t.Helper()
	for limit := time.After(drivertest.Patience); ; {
		select {
		case line := <-c.lines:
			if strings.HasPrefix(line, prefix) {
				return
			}
		case <-limit:
			c.t.Fatalf("the process does not say %q", prefix)
		}
	}
}

// TestStrangersStopNobody checks that a lock on the bytes of the directory above, which every user
// may set, does not look like a process that uses other files of the store.
func TestStrangersStopNobody(t *testing.T) {
	if !needsRoot(t) || !onefile.CanWitness {
		return
	}
	path := makeSystem(t)
	d, err := os.Open(filepath.Dir(filepath.Dir(path)))
	check(t, err)
	defer d.Close()
	lock := unix.Flock_t{Type: unix.F_RDLCK} // every byte
	check(t, unix.FcntlFlock(d.Fd(), unix.F_SETLK, &lock))
	member := spawnAs(t, firstMember, "rival", "")
	if answer := member.tries(path); answer != "granted" {
		t.Errorf("a member: %s", answer)
	}
}
