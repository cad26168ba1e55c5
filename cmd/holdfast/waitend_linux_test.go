package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// wantEndsSoon sends TERM to processes that wait, one after the other, and checks that each ends
// with 143 within 800 ms. Pauses of the machine that this process measures do not count. One
// process may be late, because of a rare pause that this process does not notice.
func wantEndsSoon(t *testing.T, waiters ...*process) {
	t.Helper()
	const soon, excused = 800 * time.Millisecond, 1 // 50 ms on an idle machine; the fault takes a second
	var late []string
	var longest time.Duration
	for _, p := range waiters {
		stop := pauses()
		began := time.Now()
		p.signal(syscall.SIGTERM)
		p.want(128 + int(syscall.SIGTERM))
		took, paused := p.ended.Sub(began), stop()
		longest = max(longest, took-paused)
		if took-paused > soon {
			late = append(late, fmt.Sprintf("%s (%s of that a pause of the machine)", took, paused))
		}
	}
	t.Logf("%d ended after %s at most, pauses of the machine not counted", len(waiters), longest)
	if len(late) > excused {
		t.Errorf("%d of %d ended after %s", len(late), len(waiters), strings.Join(late, ", "))
	}
}

// pauses measures the pauses of the machine until stop is called: by how much sleeps of a
// millisecond were too long in all.
func pauses() (stop func() time.Duration) {
	end, sum := make(chan struct{}), make(chan time.Duration)
	go func() { // ends when stop is called
		var paused time.Duration
		for {
			select {
			case <-end:
				sum <- paused
				return
			default:
			}
			began := time.Now()
			time.Sleep(time.Millisecond)
			paused += time.Since(began) - time.Millisecond
		}
	}()
	return func() time.Duration { close(end); return <-sum }
}

// three starts three processes, and returns when all of them wait.
func three(t *testing.T, store string, args ...string) (waiters []*process) {
	t.Helper()
	for range 3 {
		waiters = append(waiters, start(t, store, append(args, "--", "true")...))
	}
	for _, p := range waiters {
		p.awaitStderr("holdfast: waiting for ")
	}
	return waiters
}

// TestWaitEndsSoon checks that a run or once that waits ends with 143 soon after TERM, and gives up
// its place, with any flags.
func TestWaitEndsSoon(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		h := hold(t, store, "job")
		for _, args := range [][]string{
			{"run", "job"}, {"run", "-s", "-w", "1h", "job"}, {"run", "-N", "job", "-N", "free"}, {"once", "job"},
		} {
			waiters := three(t, store, args...)
			wantEndsSoon(t, waiters...)
			// On a busy machine some of the waiters may fail to give up their places in time.
			if s := show(t, store, "job"); s.QueueLength == len(waiters) || len(s.Holders) != 1 {
				t.Errorf("%s leaves %+v", args, s)
			}
			eventually(t, "the places are over", func() bool { return show(t, store, "job").QueueLength == 0 })
		}
		waiter := start(t, store, "once", "begin", "job")
		waiter.awaitStderr("holdfast: waiting for ")
		wantEndsSoon(t, waiter)
		h.finish()
		h.want(0)
		for _, name := range []string{"job", "free"} {
			wantRun(t, 0, store, "run", "-n", name, "--", "true")
		}
	})
}

// TestWaitEndsSoonWithoutTheStore checks that a waiter also ends soon if the store hangs. It leaves
// a place that expires with its waiter TTL, and no lock.
func TestWaitEndsSoonWithoutTheStore(t *testing.T) {
	t.Parallel()
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		server := testsvc.Redis(t)
		h := hold(t, server.URL, "job")
		waiters := three(t, server.URL, "run", "--ttl", "1h", "job")
		server.Stop()
		wantEndsSoon(t, waiters...)
		server.Cont()
		wantFree(t, server.URL, h)
	})
	t.Run("proxy", func(t *testing.T) {
		t.Parallel()
		server := testsvc.Redis(t)
		proxy := faultproxy.New(t, server.Addr)
		h := hold(t, server.URL, "job")
		waiters := three(t, "redis://"+proxy.Addr(), "run", "--ttl", "1h", "job")
		proxy.BlackHole()
		wantEndsSoon(t, waiters...)
		wantFree(t, server.URL, h)
	})
	t.Run("locked", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "locks.db")
		store := "sqlite://" + file
		h := hold(t, store, "job")
		waiters := three(t, store, "run", "--ttl", "1h", "job")
		unlock := lockFile(t, file)
		wantEndsSoon(t, waiters...)
		unlock()
		wantFree(t, store, h)
	})
	t.Run("quorum", func(t *testing.T) {
		t.Parallel()
		servers, url := trio(t, "")
		wantRun(t, 1, url, "doctor", "--admit") // it warns that there is no persistence
		h := hold(t, url, "job")
		waiters := three(t, url, "run", "--ttl", "1m", "job")
		servers[0].Stop()
		servers[1].Stop()
		wantEndsSoon(t, waiters...)
		servers[0].Cont()
		servers[1].Cont()
		wantFree(t, url, h)
	})
	t.Run("not there", func(t *testing.T) {
		t.Parallel()
		var waiters []*process
		for range 3 {
			p := start(t, "redis://127.0.0.1:1", "run", "-w", "1h", "job", "--", "true")
			p.awaitStderr("still waiting")
			waiters = append(waiters, p)
		}
		wantEndsSoon(t, waiters...)
	})
}

// wantFree ends h, and checks that the lock is free when the places of the ended waiters have
// expired, after five seconds at most.
func wantFree(t *testing.T, store string, h *holder) {
	t.Helper()
	h.finish()
	h.want(0)
	wantRun(t, 0, store, "run", "-w", "20", "job", "--", "true")
	if s := show(t, store, "job"); s.Held || len(s.Holders) != 0 {
		t.Errorf("the lock is %+v", s)
	}
}

// lockFile keeps all processes from writing to the embedded store until unlock is called. It takes
// SQLite's own lock for writers, byte 120 of the index of the log.
func lockFile(t *testing.T, file string) (unlock func()) {
	t.Helper()
	f, err := os.OpenFile(file+"-shm", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	set := func(kind int16) error {
		return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: kind, Start: 120, Len: 1})
	}
	eventually(t, "the file can be locked", func() bool { return set(unix.F_WRLCK) == nil })
	return func() {
		if err := set(unix.F_UNLCK); err != nil {
			t.Error(err)
		}
	}
}
