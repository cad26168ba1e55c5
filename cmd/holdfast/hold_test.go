//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestHoldIsKnownBeforeItIsAskedFor kills hold while it waits. Its user can still give up its place
// in the queue, because the lease ID was saved before the request.
func TestHoldIsKnownBeforeItIsAskedFor(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
	server := testsvc.Redis(t)
	h := hold(t, server.URL, "job")
	// A place lasts for 5 s, which is longer than this test takes.
	p := start(t, server.URL, "hold", "job", "--for", "48h", "--reason", "why")
	eventually(t, "it waits", func() bool { return show(t, server.URL, "job").QueueLength == 1 })
	p.signal(syscall.SIGKILL)
	p.want(137)
	wantRun(t, 79, server.URL, "release", "job")
	if n := show(t, server.URL, "job").QueueLength; n != 0 {
		t.Errorf("%d wait, want nobody", n)
	}
	h.finish()
	h.want(0)
	wantRun(t, 0, server.URL, "run", "-n", "job", "--", "true")
}

// TestHoldOnAQuorum checks that the error for a hold that is too long contains the longest TTL of
// the store.
func TestHoldOnAQuorum(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
	url := "quorum+" + testsvc.Redis(t).URL + "," + hostOf(testsvc.Redis(t).URL) + "," + hostOf(testsvc.Redis(t).URL)
	wantRun(t, 1, url, "doctor", "--admit") // it warns that nothing is written to disk
	p := start(t, url, "hold", "job", "--for", "48h", "--reason", "why")
	p.want(78)
	p.awaitStderr(`holdfast: hold "job": invalid TTL 48h0m0s: the longest of this store is 5m0s`)
	wantRun(t, 0, url, "hold", "job", "--for", "1m", "--reason", "why")
	wantRun(t, 75, url, "run", "-n", "job", "--", "true")
	wantRun(t, 0, url, "release", "job")
	wantRun(t, 0, url, "run", "-n", "job", "--", "true")
}

func hostOf(url string) string { return url[len("redis://"):] }

// TestTwoHoldsAtATime: a user runs hold twice while another process has the lock. Each hold is
// released on its own: release leaves the other hold its place in the queue.
func TestTwoHoldsAtATime(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
	server := testsvc.Redis(t)
	h := hold(t, server.URL, "job")
	var both [2]*process
	for i := range both {
		both[i] = start(t, server.URL, "hold", "job", "--for", "48h", "--reason", "why")
		eventually(t, "it waits", func() bool { return show(t, server.URL, "job").QueueLength == i+1 })
	}
	wantRun(t, 78, server.URL, "release", "job") // nothing is held yet
	h.finish()
	h.want(0)
	both[0].want(0)
	wantRun(t, 0, server.URL, "release", "job")
	both[1].want(0)
	wantRun(t, 75, server.URL, "run", "-n", "job", "--", "true")
	wantRun(t, 0, server.URL, "release", "job")
	wantRun(t, 0, server.URL, "run", "-n", "job", "--", "true")
}

// TestOnceWithoutItsKeeper checks that work whose keeper was killed can be completed while its
// lease lasts, and only once.
func TestOnceWithoutItsKeeper(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
	eachStoreInTurn(t, func(t *testing.T, store string) {
		dir := t.TempDir()
		p := startProgram(t, store, "dash", func(*process) []string {
			return []string{"-c", "cd " + dir + "; holdfast once begin key --pid $$ >state; mv state begun; until test -e end; do sleep 0.01; done"}
		})
		awaitFile(t, filepath.Join(dir, "begun"))
		if state := read(t, filepath.Join(dir, "begun")); state != "do\n" {
			t.Fatalf("begin prints %q: %s", state, read(t, p.stderr))
		}
		keepers := keepersFor(t, p.cmd.Process.Pid, "key")
		if len(keepers) != 1 {
			t.Fatalf("keepers: %v", keepers)
		}
		signalTo(t, keepers[0], syscall.SIGKILL)
		eventually(t, "the keeper has ended", func() bool { return gone(t, keepers) })
		for i, want := range []int{0, 78} {
			if status, _, stderr := feed(store, fmt.Sprint("made ", i), "once", "complete", "key"); status != want {
				t.Errorf("complete %d: status %d, want %d: %s", i, status, want, stderr)
			}
		}
		if _, out, _ := run(t, store, "once", "begin", "key", "--replay"); out != "done\nmade 0" {
			t.Errorf("the record is %q", out)
		}
		touch(t, filepath.Join(dir, "end"))
		p.want(0)
	})
}

// feed runs holdfast with text on its standard input, and returns the status and both outputs. Any
// goroutine may call it.
func feed(store, text string, args ...string) (status int, stdout, stderr string) {
	var out, messages bytes.Buffer
	cmd := exec.Command("holdfast", args...)
	cmd.Env = append(os.Environ(), "HOLDFAST_STORE="+store)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), &out, &messages
	_ = cmd.Run() // its status is read from ProcessState
	if cmd.ProcessState == nil {
		return -1, "", "holdfast did not start"
	}
	return cmd.ProcessState.ExitCode(), out.String(), messages.String()
}

// eachStoreInTurn is eachStore for tests that set variables.
func eachStoreInTurn(t *testing.T, test func(t *testing.T, store string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, sqlite(t)) })
	t.Run("redis", func(t *testing.T) { test(t, testsvc.Redis(t).URL) })
}

// keepersFor returns the process IDs of the keepers of a name for a process.
func keepersFor(t *testing.T, pid int, name string) (keepers []int) {
	t.Helper()
	out, err := exec.Command("ps", "-e", "-o", "pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		number, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.TrimSpace(args) == fmt.Sprintf("holdfast __keeper %d %s", pid, name) {
			keeper, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			keepers = append(keepers, keeper)
		}
	}
	return keepers
}
