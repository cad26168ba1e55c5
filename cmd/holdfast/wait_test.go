//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestWait checks that a wait lasts until neither holder nor queue is left, without a place of its
// own. It takes no lock, and a signal ends it at once.
func TestWait(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		h := hold(t, store, "job")
		next := enqueue(t, 1, store, "job", "job", "--", "true")
		waiter, ended := start(t, store, "wait", "job"), start(t, store, "wait", "-v", "job")
		waiter.awaitStderr("holdfast: waiting for job: ")
		ended.awaitStderr("holdfast: waiting for job: ")
		ended.signal(syscall.SIGTERM)
		ended.want(128 + int(syscall.SIGTERM))
		before := show(t, store, "job")
		if before.QueueLength != 1 || len(before.Holders) != 1 {
			t.Errorf("while it waits the lock is %+v", before)
		}
		h.finish()
		next.want(0)
		waiter.want(0)
		if waiter.ended.Before(next.ended.Add(-time.Second)) {
			t.Errorf("it ended %s before the client in the queue", next.ended.Sub(waiter.ended))
		}
		after := show(t, store, "job")
		if len(after.Holders) != 0 || after.LastToken <= before.LastToken {
			t.Errorf("after it the lock is %+v", after)
		}
		wantRun(t, 0, store, "wait", "job")
		if again := show(t, store, "job"); again.LastToken != after.LastToken {
			t.Errorf("a wait has taken a token: %d after %d", again.LastToken, after.LastToken)
		}
	})
}

// TestWaitOutage checks that a wait lasts while the store is away, unless its limit ends it with
// status 69.
func TestWaitOutage(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	holder := start(t, server.URL, "run", "--ttl", "1s", "--on-lost", "ignore", "job", "--", "sleep", "60")
	eventually(t, "the lock is held", func() bool { return show(t, server.URL, "job").Held })
	limited, patient := start(t, server.URL, "wait", "-w", "3s", "job"), start(t, server.URL, "wait", "job")
	patient.awaitStderr("waiting for job")
	limited.awaitStderr("waiting for job")
	server.Kill()
	patient.awaitStderr("still waiting")
	limited.want(69)
	holder.signal(syscall.SIGKILL)
	holder.wait()
	server.Restart()
	patient.want(0)
	if text := read(t, patient.stderr); strings.Count(text, "still waiting") != 1 || !strings.Contains(text, "the store answers again") {
		t.Errorf("the messages are %q", text)
	}
}
