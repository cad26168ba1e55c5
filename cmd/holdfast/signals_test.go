//go:build unix

package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestSignalReachesTheGroup sends TERM to holdfast alone. All processes that the command has
// started must end, even if they ignore TERM, and only then may another process get the lock.
func TestSignalReachesTheGroup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, script string
	}{
		{"willing", "workload -depth 2 %s & workload -depth 1 %[1]s & wait"},
		// The command itself obeys; its children and their children do not.
		{"deaf", "workload -deaf -depth 2 %s & workload -deaf -depth 1 %[1]s & wait"},
	} {
		t.Run(c.what, func(t *testing.T) {
			eachStore(t, func(t *testing.T, store string) {
				dir := t.TempDir()
				file, rivals := filepath.Join(dir, "marks"), filepath.Join(dir, "rival")
				p := start(t, store, "run", "--ttl", "10s", "--kill-after", "500ms", "job", "--", "sh", "-c", fmt.Sprintf(c.script, file))
				pids := awaitMarks(t, file, 5)
				rival := start(t, store, "run", "-v", "-w", "20", "job", "--", "workload", "-for", "50ms", rivals)
				rival.awaitStderr("waiting")

				began := time.Now()
				p.signal(syscall.SIGTERM)
				p.want(128 + int(syscall.SIGTERM))
				wantGone(t, pids)
				if took := p.ended.Sub(began); took > 5*time.Second {
					t.Errorf("it took %s", took)
				}
				rival.want(0)
				wantAfter(t, rivals, last(t, file))
			})
		})
	}
}

// TestSignalIsTheCommandsToHandle checks that a command may decide for itself
// what a signal means.
func TestSignalIsTheCommandsToHandle(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	p := start(t, sqlite(t), "run", "job", "--", "sh", "-c",
		"trap 'exit 7' TERM; trap 'touch "+started+"1' USR1; touch "+started+"; while :; do sleep 0.02; done")
	awaitFile(t, started)
	p.signal(syscall.SIGUSR1)
	awaitFile(t, started+"1")
	p.signal(syscall.SIGTERM)
	p.want(7)
}

// TestSignalWhileWaiting checks that a signal ends a waiter at once, and that the waiter leaves no
// lock and no place that could delay others.
func TestSignalWhileWaiting(t *testing.T) {
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}
	for _, sig := range signals {
		if signal.Ignored(sig) { // as in a background job: children would inherit that
			c := make(chan os.Signal, 1)
			signal.Notify(c, sig)
			t.Cleanup(func() { signal.Stop(c) })
		}
	}
	eachStore(t, func(t *testing.T, store string) {
		holder, left := hold(t, store, "job"), 0
		for _, sig := range signals {
			waiter := start(t, store, "run", "-v", "job", "--", "touch", filepath.Join(t.TempDir(), "never"))
			waiter.awaitStderr("waiting")
			waiter.signal(sig)
			waiter.want(128 + int(sig))
			if show(t, store, "job").QueueLength > 0 {
				left++
				eventually(t, "the place expires", func() bool { return show(t, store, "job").QueueLength == 0 })
			}
		}
		if left > 1 { // on a busy machine a waiter may fail to give up its place in the second for which it tries
			t.Errorf("%d of %d waiters have left their places", left, len(signals))
		}
		if s := show(t, store, "job"); len(s.Holders) != 1 || s.Holders[0].PID != holder.cmd.Process.Pid {
			t.Errorf("the lock is %+v", s)
		}
		holder.finish()
		holder.want(0)
		if s := show(t, store, "job"); s.Held || len(s.Holders) != 0 {
			t.Errorf("the lock is %+v", s)
		}
		wantRun(t, 0, store, "run", "-n", "job", "--", "true")
	})
}

// TestSignalWhileAsking ends a waiter while its request is on its way to a silent server. The
// waiter does not wait for the reply, and the server carries the request out later. A second
// request, which the waiter has sent behind the first, must leave no lock and no place.
func TestSignalWhileAsking(t *testing.T) {
	t.Parallel()
	const left = 1500 * time.Millisecond
	server := testsvc.Redis(t)
	redis(t, server, "SET", "job", "anything", "PX", fmt.Sprint(left.Milliseconds()))
	expiry := time.Now().Add(left)
	wantRun(t, 75, server.URL, "run", "-w", "0.1", "job", "--", "true") // after this the server has the script that gives up a place
	waiter := start(t, server.URL, "run", "-v", "--ttl", "1h", "job", "--", "true")
	waiter.awaitStderr("waiting")
	server.Stop()
	time.Sleep(time.Until(expiry.Add(500 * time.Millisecond))) // by then it has sent another request
	waiter.signal(syscall.SIGTERM)
	waiter.want(128 + int(syscall.SIGTERM)) // although the server is stopped
	server.Cont()
	wantRun(t, 0, server.URL, "run", "-n", "job", "--", "true")
	if s := show(t, server.URL, "job"); s.QueueLength != 0 {
		t.Errorf("the lock is %+v", s)
	}
}

// TestBackgroundProcessesAreLeftAlone checks that a process in the background lives on when its
// command has ended by itself.
func TestBackgroundProcessesAreLeftAlone(t *testing.T) {
	t.Parallel()
	store, file := sqlite(t), filepath.Join(t.TempDir(), "marks")
	p := start(t, store, "run", "job", "--", "sh", "-c", "workload "+file+" & until test -s "+file+"; do sleep 0.02; done; exit 5")
	p.want(5)
	pid := awaitMarks(t, file, 1)[0]
	wantRun(t, 1, store, "check", "job")
	eventually(t, "marks after the end", func() bool { return last(t, file).at.After(p.ended) })
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// TestKilled kills holdfast with SIGKILL. Its command and the command's child must end, too, and
// the lock must become free when its TTL has passed, and not before.
func TestKilled(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		dir := t.TempDir()
		file, rivals := filepath.Join(dir, "marks"), filepath.Join(dir, "rival")
		p := start(t, store, "run", "--ttl", "4s", "job", "--", "workload", "-deaf", "-depth", "1", file)
		pids := awaitMarks(t, file, 2)
		rival := start(t, store, "run", "-v", "-w", "20", "job", "--", "workload", "-for", "50ms", rivals)
		rival.awaitStderr("waiting")

		p.signal(syscall.SIGKILL)
		p.want(128 + int(syscall.SIGKILL))
		for _, pid := range pids {
			eventually(t, "the command and its child are dead", func() bool { return !alive(t, pid) })
		}
		if outlived := last(t, file).at.Sub(p.ended); outlived > 500*time.Millisecond {
			t.Errorf("the command outlived holdfast by %s", outlived)
		}

		asked := time.Now()
		s := show(t, store, "job")
		answered := time.Now()
		if !s.Held || len(s.Holders) != 1 || s.Holders[0].ExpiresInMS == nil {
			t.Fatalf("%s after the death of its holder the lock is %+v", answered.Sub(p.ended), s)
		}
		left := time.Duration(*s.Holders[0].ExpiresInMS) * time.Millisecond
		rival.want(0)
		from := readMarks(t, rivals)[0]
		if from.at.Before(asked.Add(left - 10*time.Millisecond)) {
			t.Errorf("the lock was granted %s too early", asked.Add(left).Sub(from.at))
		}
		if late := from.at.Sub(answered.Add(left)); late > 2*time.Second {
			t.Errorf("the lock was granted %s late", late)
		}
		if from.token <= s.Holders[0].FencingToken {
			t.Errorf("token %d follows token %d", from.token, s.Holders[0].FencingToken)
		}
	})
}

// TestPaused stops holdfast, but not its command, until another process has the lock. The command
// must end before that, and the status must report the loss.
func TestPaused(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		const ttl = time.Second
		dir := t.TempDir()
		file, rivals := filepath.Join(dir, "marks"), filepath.Join(dir, "rival")
		p := start(t, store, "run", "--ttl", ttl.String(), "job", "--", "workload", "-deaf", "-depth", "1", file)
		pids := awaitMarks(t, file, 2)
		pause(t, store, p)
		stopped := time.Now()

		rival := start(t, store, "run", "-w", "20", "job", "--", "workload", "-for", "50ms", rivals)
		rival.want(0)
		wantAfter(t, rivals, last(t, file)) // although holdfast is stopped
		time.Sleep(time.Until(stopped.Add(2 * ttl)))

		p.signal(syscall.SIGCONT)
		p.want(79)
		wantGone(t, pids)
	})
}
