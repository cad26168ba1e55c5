package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestKeeperIsAlone checks that the keeper has none of the script's files, nor its directory, and
// that it is in a session of its own. The password of its store is neither in its arguments nor in
// its environment.
func TestKeeperIsAlone(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	url := strings.Replace(server.URL, "redis://", "redis://default:secret@", 1)
	redis(t, server, "CONFIG", "SET", "requirepass", "secret")
	file := filepath.Join(t.TempDir(), "store")
	if err := os.WriteFile(file, []byte(url), 0o600); err != nil {
		t.Fatal(err)
	}
	p, dir := script(t, "dash", "", "--store-file "+file, waits("exec 7>seven"))
	proc := fmt.Sprintf("/proc/%d", keeperOf(t, dir))
	for _, name := range []string{"cmdline", "environ"} {
		if text, err := os.ReadFile(filepath.Join(proc, name)); err != nil || strings.Contains(string(text), "secret") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for fd, want := range map[string]string{"fd/0": "/dev/null", "fd/1": "/dev/null", "fd/2": "/dev/null", "cwd": "/"} {
		if to, err := os.Readlink(filepath.Join(proc, fd)); err != nil || to != want {
			t.Errorf("%s is %q, want %q (%v)", fd, to, want, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(proc, "fd", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range files {
		if to, _ := os.Readlink(fd); strings.HasPrefix(to, dir) {
			t.Errorf("%s is %s of the script", fd, to)
		}
	}
	out, err := exec.Command("ps", "-o", "sess=", "-p", filepath.Base(proc)).Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != filepath.Base(proc) {
		t.Errorf("its session is %q, %v", got, err)
	}
	touch(t, filepath.Join(dir, "end"))
	p.want(0)
}

// TestUncommittedKeeper kills acquire when its keeper has the lease and acquire has not reported
// this to the script. The keeper releases the lease at once, although the process that it watches
// lives.
func TestUncommittedKeeper(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	fill(t, w)
	cmd := exec.Command("holdfast", "acquire", "--pid", strconv.Itoa(os.Getpid()), "--store", server.URL, "job")
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	keepers := func() []int { return keepersFor(t, os.Getpid(), "job") }
	eventually(t, "the keeper has extended the lease", func() bool {
		return len(keepers()) == 1 && strings.Contains(redis(t, server, "INFO", "commandstats"), "cmdstat_evalsha:calls=2,")
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	began := time.Now()
	eventually(t, "the keeper has ended", func() bool { return len(keepers()) == 0 })
	if n := redisInt(t, server, "EXISTS", "job"); n != 0 {
		t.Error("the lock is held")
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
