//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestOutageDuringWait checks that a wait whose store goes away reports this at once, can be ended
// by a signal meanwhile, and ends with status 69.
func TestOutageDuringWait(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	holder := start(t, server.URL, "run", "job", "--", "sleep", "60")
	eventually(t, "the lock is held", func() bool { return show(t, server.URL, "job").Held })
	waiter := start(t, server.URL, "run", "-w", "5s", "job", "--", "true")
	ended := start(t, server.URL, "run", "job", "--", "true")
	eventually(t, "both wait", func() bool { return show(t, server.URL, "job").QueueLength == 2 })
	server.Kill()
	ended.awaitStderr("still waiting")
	waiter.awaitStderr("still waiting")
	ended.signal(syscall.SIGTERM)
	began := time.Now()
	ended.want(128 + int(syscall.SIGTERM))
	if took := ended.ended.Sub(began); took > 2*time.Second {
		t.Errorf("TERM took %s", took)
	}
	waiter.want(69)
	if text := read(t, waiter.stderr); !strings.Contains(text, "cannot be reached") || strings.Contains(text, "for another") {
		t.Errorf("the message is %q", text)
	}
	holder.signal(syscall.SIGTERM)
}

// TestWaitForStoreThatIsNotThere checks that the limit of a wait includes the wait for the store,
// which is reported once. If the store starts in time, the lock is acquired.
func TestWaitForStoreThatIsNotThere(t *testing.T) {
	t.Parallel()
	began := time.Now()
	stderr := wantRun(t, 69, "redis://127.0.0.1:1", "run", "-w", "1.5s", "job", "--", "true")
	if took := time.Since(began); took < 1500*time.Millisecond {
		t.Errorf("it gave up after %s", took)
	}
	if strings.Count(stderr, "still waiting") != 1 {
		t.Errorf("the message is %q", stderr)
	}
	server := testsvc.Redis(t)
	server.Stop()
	if stderr := wantRun(t, 69, server.URL, "run", "-w", "0.1", "job", "--", "true"); strings.Contains(stderr, "still waiting") {
		t.Errorf("the wait has ended, and the message is %q", stderr)
	}
	server.Kill()
	p := start(t, server.URL, "run", "-w", "30s", "job", "--", "true")
	p.awaitStderr("still waiting")
	server.Restart()
	p.want(0)
	if text := read(t, p.stderr); !strings.Contains(text, "the store answers again") {
		t.Errorf("the message is %q", text)
	}
}
