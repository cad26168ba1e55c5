//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
)

// TestModes checks the modes of files that name a store: no other user may write them, or read them
// if they contain a password.
func TestModes(t *testing.T) {
	const public, secret = "store = redis://h", "store = redis://u:pw@h"
	own := os.Geteuid() != 0 // then the rule for groups of root's files does not apply to this test's
	for _, c := range []struct {
		text   string
		mode   fs.FileMode
		advice string // empty if the file is accepted
	}{
		{public, 0o644, ""},
		{public, 0o600, ""},
		{public, 0o664, "chmod go-w "},
		{public, 0o646, "chmod go-w "},
		{public, 0o620, "chmod go-w "},
		{secret, 0o600, ""},
		{secret, 0o400, ""},
		{secret, 0o604, "chmod "},
		{secret, 0o644, "chmod "},
		{secret, 0o660, "chmod go-w "},
		{secret, 0o640, map[bool]string{true: "chmod go-r ", false: ""}[own]},
		{"store = redis+sentinel://h/m?sentinel_password=pw", 0o644, "chmod "},
		{"store = redis:pw", 0o644, "chmod "},
	} {
		h := newHouse(t)
		path := h.file(userConf, c.text, c.mode)
		_, err := h.resolve("", "")
		if c.advice == "" && err != nil || c.advice != "" && (!errors.Is(err, driver.ErrInvalid) ||
			!strings.Contains(err.Error(), c.advice) || !strings.HasSuffix(err.Error(), path)) {
			t.Errorf("%q with mode %o: %v, want %q", c.text, c.mode, err, c.advice)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("%v has the password", err)
		}
	}
}

// An owned describes a file with a mode and an owner.
type owned struct {
	fs.FileInfo
	mode fs.FileMode
	uid  int
}

func (o owned) Mode() fs.FileMode { return o.mode }
func (o owned) Sys() any          { return &syscall.Stat_t{Uid: uint32(o.uid)} }

// TestOwners checks that a file of another user is refused whatever its mode is, because its owner
// can change it at any time, and that root decides who reads root's files.
func TestOwners(t *testing.T) {
	me := os.Geteuid()
	for uid, taken := range map[int]bool{me: true, 0: true, me + 1: false, 65534: me == 65534} {
		err := checkOwner("/f", owned{uid: uid})
		if (err == nil) != taken {
			t.Errorf("of user %d: %v", uid, err)
		}
	}
	for _, c := range []struct {
		uid   int
		mode  fs.FileMode
		taken bool
	}{
		{0, 0o640, true}, {0, 0o644, false}, {0, 0o604, false}, {1 << 20, 0o640, false}, {1 << 20, 0o600, true},
	} {
		err := checkReaders("/f", owned{mode: c.mode, uid: c.uid})
		if (err == nil) != c.taken {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil && !strings.Contains(err.Error(), "/f has credentials in its URL, or a URL that is not valid, and others may read it: ") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestPipeIsNotWaitedFor checks that a pipe without a writer is refused at once.
func TestPipeIsNotWaitedFor(t *testing.T) {
	h := newHouse(t)
	path := h.file(userConf, "", 0o600)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	h.fails(driver.ErrInvalid, "not a regular file")
}

// TestUnknownIsNotAbsent checks that a user who may not search the directory of a source gets an
// error, and no other store.
func TestUnknownIsNotAbsent(t *testing.T) {
	for _, hidden := range []string{systemConfig, "/" + userConf, systemStore} {
		h := newHouse(t)
		dir := filepath.Dir(h.file(hidden, "store = redis://h", 0o600))
		for path, mode := range map[string]fs.FileMode{dir: 0, h.root: 0o755, filepath.Dir(h.root): 0o755} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		notAsRoot(t, func() {
			if hidden == systemStore { // opening it reports who may use it
				h.wants("sqlite://"+h.root+systemStore, "the system store")
				return
			}
			h.fails(driver.ErrPermission, "--store")
		})
		if err := os.Chmod(dir, 0o700); err != nil { // for the cleanup
			t.Fatal(err)
		}
	}
}

// notAsRoot calls f as another user if this user is root, who may look everywhere.
func notAsRoot(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		if err := syscall.Seteuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Seteuid(0); err != nil {
				t.Fatal(err)
			}
		}()
	}
	f()
}
