package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestEndlessIsSaidAtOnce checks that a run that waits for a foreign key without expiry logs this
// once, with advice, when the wait begins, on a terminal and without. There is no such message for
// a foreign lock that expires, and a key of another type is refused.
func TestEndlessIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	const said = `run "sessions": held by a client that is not holdfast, with no expiry: it may be data of another program: then use another name`
	server := testsvc.Redis(t)
	redis(t, server, "SET", "sessions", "{}")
	redis(t, server, "SET", "lock", "owner", "PX", "60000")
	redis(t, server, "RPUSH", "list", "a")

	waiters := []*process{
		start(t, server.URL, "run", "sessions", "--", "true"),
		start(t, server.URL, "run", "-q", "sessions", "--", "true"),
		start(t, server.URL, "run", "lock", "--", "true"),
	}
	waiters[0].awaitStderr(said)
	eventually(t, "all wait", func() bool {
		return show(t, server.URL, "sessions").QueueLength == 2 && show(t, server.URL, "lock").QueueLength == 1
	})
	for i, p := range waiters {
		p.signal(syscall.SIGTERM)
		p.want(128 + int(syscall.SIGTERM))
		text := read(t, p.stderr)
		if got := strings.Count(text, "data of another program"); got > 1 || got > 0 != (i == 0) || i == 1 && strings.Contains(text, "held by") {
			t.Errorf("%q", text)
		}
	}
	if text := wantRun(t, 75, server.URL, "run", "-n", "sessions", "--", "true"); !strings.HasPrefix(text, "holdfast: "+said) || strings.Count(text, "\n") != 1 {
		t.Errorf("without a wait: %q", text)
	}
	if text := wantRun(t, 78, server.URL, "run", "list", "--", "true"); !strings.Contains(text, "another program uses this key") {
		t.Errorf("another type: %q", text)
	}
	term := startTerminal(t, server.URL, "holdfast run sessions -- true")
	term.awaitLine("holdfast: " + said[:60] + ".*")
	term.press("\x03")
}
