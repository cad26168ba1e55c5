package main

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A person runs holdfast in an environment of their own, and with attr as another user.
type person struct {
	t    *testing.T
	env  []string
	attr *syscall.SysProcAttr
}

// calls runs holdfast and returns its status and output.
func (p person) calls(args ...string) (int, string) {
	p.t.Helper()
	program, err := exec.LookPath("holdfast")
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = append([]string{"PATH=/usr/bin:/bin", quickExit}, p.env...), "/", p.attr
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// wants runs holdfast, and checks its status and that its output has all of the words, but not the
// password.
func (p person) wants(status int, args []string, words ...string) {
	p.t.Helper()
	got, said := p.calls(args...)
	for _, w := range words {
		if got != status || !strings.Contains(said, w) {
			p.t.Errorf("%q: status %d, want %d and %q:\n%s", p.env, got, status, w, said)
		}
	}
	if strings.Contains(said, password) {
		p.t.Errorf("%q: it says the password:\n%s", p.env, said)
	}
}

// inSystem writes a file below the root of the tests' program. The file is removed at the end of
// the test.
func inSystem(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	path = filepath.Join(systemRoot, path)
	writeFile(t, path, text, mode)
	t.Cleanup(func() { _ = os.Remove(path) })
	return path
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

func change(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// isRoot reports whether a test can give files to other users, and run as other users.
func isRoot() bool { return os.Geteuid() == 0 }

// alone returns a user namespace in which this user is root, and every other user is nobody. It is
// for tests that cannot run as other users.
func alone() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// TestCronUsesTheSameStore checks that a shell, cron and a service of one user have the same store,
// with a file of the user's own and with a configuration.
func TestCronUsesTheSameStore(t *testing.T) {
	account, err := user.Current()
	change(t, err)
	home := filepath.Join(systemRoot, account.HomeDir)
	people := []person{
		{t, []string{"HOME=" + home, "USER=" + account.Username, "TERM=dumb", "LANG=C"}, nil},
		{t, []string{"HOME=" + home, "LOGNAME=" + account.Username, "SHELL=/bin/sh"}, nil}, // cron
		{t, nil, nil}, // a service
		{t, []string{"HOME=", "XDG_CONFIG_HOME=", "XDG_STATE_HOME=relative"}, nil},
	}
	for _, p := range people {
		p.wants(0, []string{"ls", "-v"}, "the store is sqlite://"+home+"/.local/state/holdfast/locks.db (your own file)")
	}
	other := filepath.Join(t.TempDir(), "mine.db")
	conf := filepath.Join(home, ".config", "holdfast.conf")
	writeFile(t, conf, "store = sqlite://"+other+"\n", 0o600)
	t.Cleanup(func() { _ = os.Remove(conf) })
	for _, p := range people {
		p.wants(0, []string{"ls", "-v"}, "the store is sqlite://"+other+" ("+conf+", line 1)")
	}
	for _, p := range people { // sudo and su may change these directories
		p.env = append(p.env, "XDG_CONFIG_HOME=/nonexistent", "XDG_STATE_HOME="+t.TempDir())
		p.wants(0, []string{"ls", "-v"}, "(your own file)")
	}
}

// TestSudoTakesNoStrangersFile: sudo -E keeps the environment of another user, whose file could
// make root use any store. Root gets an error, and no other store.
func TestSudoTakesNoStrangersFile(t *testing.T) {
	config := t.TempDir()
	conf := filepath.Join(config, "holdfast.conf")
	p := person{t, []string{"HOME=" + t.TempDir(), "XDG_CONFIG_HOME=" + config}, nil}
	if isRoot() {
		writeFile(t, conf, "store = memory:\n", 0o600)
		change(t, os.Chown(conf, 54001, 54001))
	} else { // the machine's root is nobody in the namespace
		change(t, os.Symlink("/etc/passwd", conf))
		p.attr = alone()
	}
	ran := filepath.Join(t.TempDir(), "ran")
	p.wants(78, []string{"run", "-n", "job", "--", "touch", ran}, `holdfast: run "job": invalid configuration: `+conf+" belongs to ", "chown", "--store")
	p.wants(78, []string{"--store-file", conf, "run", "-n", "job", "--", "touch", ran}, "belongs to ")
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command was run")
	}
	p.wants(0, []string{"--store", "memory:", "ls", "-v"}, "the store is memory: (--store)")
	if isRoot() { // the same with another user's link to a file of root's
		own := filepath.Join(t.TempDir(), "store")
		writeFile(t, own, "memory:\n", 0o600)
		change(t, os.Remove(conf))
		change(t, os.Symlink(own, conf))
		p.wants(0, []string{"--store-file", conf, "ls"}, "")
		change(t, os.Lchown(conf, 54001, 54001))
		p.wants(78, []string{"--store-file", conf, "ls"}, "belongs to ")
	}
}

// TestOutsideTheGroup: root shares a password in a file that a group may read. A user outside the
// group gets an error, and uses no other store.
func TestOutsideTheGroup(t *testing.T) {
	conf := inSystem(t, "etc/holdfast.conf", "store = redis://ada:"+password+"@127.0.0.1:1\n", 0o640)
	home := t.TempDir()
	env := []string{"HOME=" + home}
	member, outsider := person{t, env, alone()}, person{t, env, nil}
	if isRoot() {
		const group = 54010
		change(t, os.Chown(conf, 0, group))
		change(t, os.Chmod(home, 0o777))
		change(t, os.Chmod(filepath.Dir(home), 0o755))
		member.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54002, Gid: 54002, Groups: []uint32{group}}}
		outsider.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54003, Gid: 54003}}
	}
	member.wants(69, []string{"show", "job"}, "the store redis://127.0.0.1:1 ("+conf+", line 1) cannot be reached")
	if !isRoot() {
		change(t, os.Chmod(conf, 0))
	}
	outsider.wants(77, []string{"run", "job", "--", "true"}, "you may not read "+conf, "--store")
	outsider.wants(77, []string{"ls", "--json"}, `"error": "not_permitted"`)
	if files, err := os.ReadDir(home); err != nil || len(files) > 0 {
		t.Errorf("there is %v, %v", files, err)
	}
	change(t, os.Chmod(conf, 0o644))
	member.wants(78, []string{"ls"}, conf+" has credentials in its URL, or a URL that is not valid, and others may read it: chmod ")
	change(t, os.Chmod(conf, 0o660))
	member.wants(78, []string{"ls"}, conf+" can be written by others, who could have you use another store: chmod go-w "+conf)
}
