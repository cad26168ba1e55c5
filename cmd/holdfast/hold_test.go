package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestHoldIsKnownBeforeItIsAskedFor kills hold while it waits: its place in the queue
// can be given up by its author, who knows the lease ID from before the request.
func TestHoldIsKnownBeforeItIsAskedFor(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
	server := testsvc.Redis(t)
	h := hold(t, server.URL, "job")
	// A place lasts for 5 s, which is longer than all of this takes.
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

// TestHoldOnAQuorum: a store whose leases are short says how long a hold may be.
func TestHoldOnAQuorum(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
	url := "quorum+" + testsvc.Redis(t).URL + "," + hostOf(testsvc.Redis(t).URL) + "," + hostOf(testsvc.Redis(t).URL)
	wantRun(t, 1, url, "doctor", "--admit") // nothing is written to a disk
	p := start(t, url, "hold", "job", "--for", "48h", "--reason", "why")
	p.want(78)
	p.awaitStderr("the longest of this store is 5m0s")
	wantRun(t, 0, url, "hold", "job", "--for", "1m", "--reason", "why")
	wantRun(t, 75, url, "run", "-n", "job", "--", "true")
	wantRun(t, 0, url, "release", "job")
	wantRun(t, 0, url, "run", "-n", "job", "--", "true")
}

func hostOf(url string) string { return url[len("redis://"):] }
