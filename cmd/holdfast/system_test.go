//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The system store is for root and the members of a group. Its tests need a group that every
// machine has, and users without accounts.
const (
	systemGroup = "daemon"
	ada         = 54001 // has the group as primary group
	bob         = 54002 // has the group as another group
	eve         = 54003 // is not a member
)

// A host is a machine of its own, as far as holdfast can see: its program takes a directory for /.
type host struct {
	t       *testing.T
	root    string
	program string
	group   uint32
}

// newHost returns a host without a system store, or nil if the tests cannot run as other users.
func newHost(t *testing.T) *host {
	t.Helper()
	// In a user namespace there may be no other users, and / belongs to another user than root.
	top, err := os.Stat("/")
	if err != nil || top.Sys().(*syscall.Stat_t).Uid != 0 || os.Geteuid() != 0 || os.Chown(t.TempDir(), ada, bob) != nil {
		t.Log("NOT TRIED: only root can make a system store, and become its members: run the tests of this package with sudo")
		return nil
	}
	h := &host{t: t, root: t.TempDir()}
	g, err := user.LookupGroup(systemGroup)
	h.check(err)
	number, err := strconv.ParseUint(g.Gid, 10, 32)
	h.check(err)
	h.group = uint32(number)
	h.check(os.Chmod(h.root, 0o755))
	h.check(os.Chmod(filepath.Dir(h.root), 0o755))
	h.check(os.MkdirAll(filepath.Join(h.root, "var/lib"), 0o755))
	for _, uid := range []int{0, ada, bob, eve} {
		h.check(os.Mkdir(h.home(uid), 0o700))
		h.check(os.Chown(h.home(uid), uid, uid))
	}
	h.program = filepath.Join(h.root, "holdfast")
	if out, err := exec.Command("go", "build", "-ldflags", "-X main.root="+h.root, "-o", h.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return h
}

func (h *host) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) home(uid int) string { return filepath.Join(h.root, "home"+strconv.Itoa(uid)) }
func (h *host) store() string       { return filepath.Join(h.root, "var/lib/holdfast/locks.db") }

// command returns a holdfast command for a user, with the environment of cron.
func (h *host) command(uid int, args ...string) *exec.Cmd {
	c := exec.Command(h.program, args...)
	c.Dir = h.root
	c.Env = []string{"HOME=" + h.home(uid), "SHELL=/bin/sh", "PATH=/usr/bin:/bin", "HOLDFAST=" + h.program, quickExit}
	credential := &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	switch uid {
	case ada:
		credential.Gid = h.group
	case bob:
		credential.Groups = []uint32{h.group}
	}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	return c
}

// want runs holdfast as a user, checks the status, and returns the output.
func (h *host) want(status, uid int, args ...string) string {
	h.t.Helper()
	c := h.command(uid, args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	_ = c.Run()
	if got := c.ProcessState.ExitCode(); got != status {
		h.t.Errorf("user %d: holdfast %s: status %d, want %d\n%s", uid, strings.Join(args, " "), got, status, out.String())
	}
	return out.String()
}

// says fails the test unless text has each of the words.
func (h *host) says(text string, words ...string) {
	h.t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			h.t.Errorf("there is no %q in\n%s", w, text)
		}
	}
}

// holds makes a user hold the lock "job" until the returned function is called.
func (h *host) holds(uid int) (release func()) {
	h.t.Helper()
	c := h.command(uid, "run", "-n", "job", "--", "sh", "-c", "echo held; exec cat >/dev/null")
	in, err := c.StdinPipe()
	h.check(err)
	out, err := c.StdoutPipe()
	h.check(err)
	c.Stderr = os.Stderr
	h.check(c.Start())
	if _, err := io.ReadFull(out, make([]byte, len("held\n"))); err != nil {
		h.t.Fatalf("user %d does not get the lock: %v", uid, err)
	}
	return func() {
		_ = in.Close()
		h.check(c.Wait())
	}
}

// TestSystemStore checks that root's cron and the members of the group exclude each other, without
// a variable in the environment and by every spelling. Other users get an error, and no lock
// anywhere else.
func TestSystemStore(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if h == nil {
		return
	}
	h.says(h.want(77, ada, "doctor", "--make-system-store="+systemGroup), "sudo")
	h.says(h.want(78, 0, "doctor", "--make-system-store=no-such-group"), "groupadd --system no-such-group")
	h.want(64, 0, "doctor", "--make-system-store", "--store", "memory:")
	if _, err := os.Lstat(filepath.Dir(h.store())); err == nil {
		t.Fatal("a refusal has made the store")
	}
	h.says(h.want(0, 0, "doctor", "--make-system-store="+systemGroup), "made sqlite://"+h.store(), "usermod -aG "+systemGroup, "ok  locks", "system store: root and")
	h.says(h.want(0, 0, "doctor", "--make-system-store="+systemGroup), "exists, and nothing was changed")

	link := filepath.Join(h.root, "link")
	h.check(os.Symlink(filepath.Dir(h.store()), link))
	spellings := [][]string{nil, {"--store", "sqlite://" + h.store()}, {"--store", "sqlite://" + link + "/locks.db"}}
	for _, holder := range []int{0, ada, bob} {
		release := h.holds(holder)
		for _, other := range []int{0, ada, bob} {
			for _, s := range spellings {
				h.want(75, other, append(append([]string{"run"}, s...), "-n", "job", "--", "touch", "ran")...)
			}
		}
		for _, s := range spellings {
			text := h.want(77, eve, append(append([]string{"run"}, s...), "-n", "job", "--", "touch", "ran")...)
			h.says(text, systemGroup, "name another store")
		}
		if holder != 0 { // sudo may keep the home of its user
			sudo := h.command(0, "run", "-n", "job", "--", "touch", "ran")
			sudo.Env = append(sudo.Env, "HOME="+h.home(ada), "SUDO_USER=ada", "SUDO_UID="+strconv.Itoa(ada))
			if _ = sudo.Run(); sudo.ProcessState.ExitCode() != 75 {
				t.Errorf("sudo: status %d, want 75", sudo.ProcessState.ExitCode())
			}
		}
		release()
	}
	h.isRefusedIfChanged()
	h.want(0, bob, "run", "a", "--", "sh", "-c", `"$HOLDFAST" run b -- "$HOLDFAST" run c -- true`)
	h.stopsWhatRunsIfDamaged()
	for _, file := range []string{"ran", "home0/.local", "home54001/.local", "home54002/.local", "home54003/.local"} {
		if _, err := os.Lstat(filepath.Join(h.root, file)); err == nil {
			t.Errorf("there is %s", file)
		}
	}
}

// stopsWhatRunsIfDamaged checks that root's process does not crash when a member truncates the
// shared memory of the processes, but loses its lease and stops its command.
func (h *host) stopsWhatRunsIfDamaged() {
	h.t.Helper()
	c := h.command(0, "run", "--ttl", "2s", "job", "--", "sh", "-c", "echo held; exec sleep 60")
	out, err := c.StdoutPipe()
	h.check(err)
	var said strings.Builder
	c.Stderr = &said
	h.check(c.Start())
	if _, err := io.ReadFull(out, make([]byte, len("held\n"))); err != nil {
		h.t.Fatal(err)
	}
	h.check(os.Truncate(h.store()+"-shm", 0))
	_ = c.Wait()
	if got := c.ProcessState.ExitCode(); got != 79 {
		h.t.Errorf("status %d, want 79: %s", got, said.String())
	}
	h.want(0, bob, "run", "-w", "10", "job", "--", "true")
}

// isRefusedIfChanged checks that a store that is no longer as root has made it is refused for all
// users, by every spelling, and that no user gets a file of their own instead.
func (h *host) isRefusedIfChanged() {
	dir := filepath.Dir(h.store())
	for what, change := range map[string][2]func() error{
		"sticky bit": {func() error { return os.Chmod(dir, 0o770|os.ModeSetgid) }, func() error { return os.Chmod(dir, 0o770|os.ModeSetgid|os.ModeSticky) }},
		"owner":      {func() error { return os.Chown(h.store(), ada, -1) }, func() error { return os.Chown(h.store(), 0, -1) }},
		"hard link":  {func() error { return os.Link(h.store(), dir+"/more") }, func() error { return os.Remove(dir + "/more") }},
	} {
		h.check(change[0]())
		for _, uid := range []int{0, ada} {
			h.says(h.want(78, uid, "run", "-n", "job", "--", "touch", "ran"), "system store")
			h.want(78, uid, "run", "--store", "sqlite://"+dir+"/../holdfast/locks.db", "-n", "job", "--", "touch", "ran")
		}
		h.want(78, 0, "doctor", "--make-system-store="+systemGroup)
		h.check(change[1]())
		h.want(0, ada, "run", "-n", "job", "--", "true")
		if h.t.Failed() {
			h.t.Fatal(what)
		}
	}
}
