//go:build unix

package main

import (
	"strings"
	"testing"
)

// TestNamesExclude starts runs with several names in different orders. No two of them may have a
// name at the same time, and none may wait for ever: runs that take locks in the order of their
// command lines could wait for each other in a circle.
func TestNamesExclude(t *testing.T) {
	t.Parallel()
	exclude := func(t *testing.T, store string) {
		dir := t.TempDir()
		script := `for n in $HOLDFAST_NAMES; do mkdir ` + dir + `/$n || exit 99; done; sleep 0.02
			for n in $HOLDFAST_NAMES; do rmdir ` + dir + `/$n; done; exit 3`
		const turns, atATime = 3, 5
		var started []*process
		for range turns {
			for _, names := range []string{"a b", "b c", "c a", "b a c", "c"} {
				if n := len(started); n >= atATime {
					started[n-atATime].want(3)
				}
				args := []string{"run"}
				for _, name := range strings.Fields(names) {
					args = append(args, "-N", name)
				}
				started = append(started, start(t, store, append(args, "-c", script)...))
			}
		}
		for _, p := range started {
			p.want(3)
		}
		for _, name := range []string{"a", "b", "c"} {
			wantRun(t, 1, store, "check", name)
		}
	}
	eachStore(t, exclude)
	t.Run("quorum", func(t *testing.T) {
		t.Parallel()
		_, url := trio(t, "")
		wantRun(t, 1, url, "doctor", "--admit") // it warns that there is no persistence
		exclude(t, url)
	})
}

// TestNamesEndTogether breaks one of two locks. The job must be stopped with a status and a message
// that names the broken lock, and the other lock must be released.
func TestNamesEndTogether(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		for _, broken := range []string{"first", "second"} {
			p := start(t, store, "run", "--ttl", "2s", "-N", "second", "-N", "first", "-c", "echo held >&2; sleep 60 & wait")
			p.awaitStderr("held")
			wantRun(t, 0, store, "break", broken, "--reason", "why")
			p.want(79)
			if stderr := read(t, p.stderr); !strings.Contains(stderr, `run "`+broken+`": `) || !strings.Contains(stderr, "why") {
				t.Errorf("it says %q", stderr)
			}
			wantRun(t, 1, store, "check", "first")
			wantRun(t, 1, store, "check", "second")
		}
	})
}
