//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestStoreFreezes stops the server while a command runs. The command and all its descendants must
// be gone before the lock expires, so that they never run at the same time as a rival that waits
// for the lock.
func TestStoreFreezes(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	for what, c := range map[string]struct {
		flags []string
		early time.Duration // the least time from its end to the expiry
	}{
		"willing": {[]string{"-depth", "2"}, ttl / 4}, // the time between TERM and KILL
		"deaf":    {[]string{"-depth", "2", "-deaf"}, ttl / 20},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server, dir := testsvc.Redis(t), t.TempDir()
			file, rivals := filepath.Join(dir, "marks"), filepath.Join(dir, "rival")
			p := start(t, server.URL, append(append([]string{"run", "--ttl", ttl.String(), "job", "--", "workload"}, c.flags...), file)...)
			pids := awaitMarks(t, file, 3)
			rival := start(t, server.URL, "run", "-v", "-w", "30", "job", "--", "workload", "-for", "50ms", rivals)
			rival.awaitStderr("waiting")

			expiry := freeze(t, server, "job", ttl)
			eventually(t, "the command is gone", func() bool { return gone(t, pids) })
			time.Sleep(time.Until(expiry)) // no mark may follow, before the expiry or after it
			server.Cont()
			p.want(79)
			rival.want(0)

			end := last(t, file)
			if early := expiry.Sub(end.at); early < c.early {
				t.Errorf("the command was gone %s before its lock, want %s", early, c.early)
			}
			wantAfter(t, rivals, end)
		})
	}
}

// TestStoreDies kills the server, so that connections are closed and refused. The command must end
// before the lock expires, but no sooner than necessary.
func TestStoreDies(t *testing.T) {
	t.Parallel()
	server, file := testsvc.Redis(t), filepath.Join(t.TempDir(), "marks")
	const ttl = 3 * time.Second
	p := start(t, server.URL, "run", "--ttl", ttl.String(), "job", "--", "workload", "-deaf", "-depth", "1", file)
	pids := awaitMarks(t, file, 2)
	expiry := freeze(t, server, "job", ttl)
	server.Kill()
	p.want(79)
	wantGone(t, pids)
	end := last(t, file).at
	if !end.Before(expiry) {
		t.Errorf("the command outlived its lock by %s", end.Sub(expiry))
	}
	if early := expiry.Sub(end); early > ttl/2 {
		t.Errorf("it was stopped %s before the expiry", early)
	}
}

// TestLockIsTakenAway deletes the lock of a holder, which must notice this at the next renewal.
func TestLockIsTakenAway(t *testing.T) {
	t.Parallel()
	const ttl, killAfter, slack = 3 * time.Second, 100 * time.Millisecond, 900 * time.Millisecond
	for what, command := range map[string][]string{"deleted": {"DEL", "job"}, "flushed": {"FLUSHALL"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server, file := testsvc.Redis(t), filepath.Join(t.TempDir(), "marks")
			p := start(t, server.URL, "run", "--ttl", ttl.String(), "--kill-after", killAfter.String(), "job", "--", "workload", "-deaf", "-depth", "1", file)
			pids := awaitMarks(t, file, 2)
			awaitRenewal(t, server, "job", ttl)
			deleted := time.Now()
			redis(t, server, command...)
			p.want(79)
			wantGone(t, pids)
			if took := last(t, file).at.Sub(deleted); took > ttl/3+killAfter+slack {
				t.Errorf("the command ran on for %s", took)
			}
			wantRun(t, 0, server.URL, "run", "-n", "job", "--", "true")
		})
	}
}

// TestLockIsTakenOver checks that a holder whose lock was given to another client neither disturbs
// the new holder nor releases its lock.
func TestLockIsTakenOver(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	p := hold(t, server.URL, "job", "--ttl", "1s")
	redis(t, server, "SET", "job", "mine", "PX", "60000")
	p.want(79)
	if got := redis(t, server, "GET", "job"); got != "mine" {
		t.Errorf("the new holder's key is %q", got)
	}
}

// TestOnLost checks the alternatives to TERM after a loss: --on-lost kill and ignore.
func TestOnLost(t *testing.T) {
	t.Parallel()
	t.Run("kill", func(t *testing.T) {
		t.Parallel()
		server, file := testsvc.Redis(t), filepath.Join(t.TempDir(), "started")
		p := start(t, server.URL, "run", "--ttl", "1s", "--on-lost", "kill", "job", "--", "sh", "-c",
			"trap 'touch "+file+"-term' TERM; touch "+file+"; while :; do sleep 0.02; done")
		awaitFile(t, file)
		redis(t, server, "DEL", "job")
		p.want(79)
		if _, err := os.Stat(file + "-term"); err == nil {
			t.Error("the command got TERM")
		}
	})
	t.Run("ignore", func(t *testing.T) {
		t.Parallel()
		server := testsvc.Redis(t)
		p := hold(t, server.URL, "job", "--ttl", "1s", "--on-lost", "ignore")
		redis(t, server, "DEL", "job")
		p.awaitStderr("lost")
		wantRun(t, 0, server.URL, "run", "-n", "job", "--", "true")
		p.finish()
		p.want(0)
	})
}

// TestLostAtTheEnd checks that the status is 79 if a command ends by itself after its lock was
// lost.
func TestLostAtTheEnd(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	p := hold(t, server.URL, "job", "--ttl", "60s") // no renewal for 20 s
	redis(t, server, "DEL", "job")
	p.finish()
	p.want(79)
}

// freeze stops the server and returns the expiry of the lock. No renewal is under way that the
// server could still carry out.
func freeze(t *testing.T, server *testsvc.Server, name string, ttl time.Duration) (expiry time.Time) {
	t.Helper()
	for range 10 {
		expiry = awaitRenewal(t, server, name, ttl)
		server.Stop()
		// A renewal is due when less than two thirds are left.
		if time.Until(expiry) > ttl*3/4 {
			return expiry
		}
		server.Cont()
	}
	t.Fatal("this machine is too slow for the test")
	return
}

// awaitRenewal waits until the lock has just been renewed or acquired, and
// returns its expiry.
func awaitRenewal(t *testing.T, server *testsvc.Server, name string, ttl time.Duration) (expiry time.Time) {
	t.Helper()
	eventually(t, name+" is renewed", func() bool {
		left := time.Duration(redisInt(t, server, "PTTL", name)) * time.Millisecond
		// This is later than the real expiry by the time that the reply took. Holdfast is not to
		// blame for this delay of the test.
		expiry = time.Now().Add(left)
		return left > ttl*9/10
	})
	return expiry
}

// gone reports whether none of the processes runs.
func gone(t *testing.T, pids []int) bool {
	t.Helper()
	for _, pid := range pids {
		if alive(t, pid) {
			return false
		}
	}
	return true
}

// TestStoppedRunSaysSo checks the message of a holdfast that was stopped itself, and is continued
// after its warden has ended the command: it does not blame the store.
func TestStoppedRunSaysSo(t *testing.T) {
	t.Parallel()
	server, file := testsvc.Redis(t), filepath.Join(t.TempDir(), "marks")
	p := start(t, server.URL, "run", "--ttl", "3s", "job", "--", "workload", file)
	pids := awaitMarks(t, file, 1)
	p.signal(syscall.SIGSTOP)
	eventually(t, "the warden has killed the command", func() bool { return gone(t, pids) })
	p.signal(syscall.SIGCONT)
	p.want(79)
	if text := read(t, p.stderr); !strings.Contains(text, "holdfast itself was stopped") || strings.Contains(text, "does not answer") {
		t.Errorf("it says %q", text)
	}
}

// TestCommandEndsWhileItsRunIsStopped: the command ends in time, but its lease has expired before
// holdfast is continued and releases it. The message reports this, unless holdfast notices the loss
// before the end of the command. It blames neither the store nor a loss during the command.
func TestCommandEndsWhileItsRunIsStopped(t *testing.T) {
	t.Parallel()
	server, dir := testsvc.Redis(t), t.TempDir()
	p := start(t, server.URL, "run", "--ttl", "6s", "job", "--", "sh", "-c", "cd "+dir+"; touch begun; until test -e end; do sleep 0.01; done; touch ended")
	awaitFile(t, filepath.Join(dir, "begun"))
	p.signal(syscall.SIGSTOP)
	touch(t, filepath.Join(dir, "end"))
	awaitFile(t, filepath.Join(dir, "ended"))
	wantRun(t, 0, server.URL, "run", "-w", "60", "job", "--", "true")
	p.signal(syscall.SIGCONT)
	p.want(79)
	want := `holdfast: run "job": the command ended with status 0, but its lease had ended before: `
	if text := read(t, p.stderr); !strings.HasPrefix(text, want) && !strings.Contains(text, "holdfast itself was stopped") {
		t.Errorf("it says %q, want %q", text, want)
	}
}
