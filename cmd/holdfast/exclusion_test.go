//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestRunsNeverOverlap checks that of four processes that use one name, one at a time has the lock.
func TestRunsNeverOverlap(t *testing.T) {
	const processes, runs = 4, 5 // processes at a time, and runs of each
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		file := filepath.Join(t.TempDir(), "marks")
		script := fmt.Sprintf(`echo "start $$ $HOLDFAST_FENCING_TOKEN" >>%[1]s; sleep 0.02; echo "end $$ $HOLDFAST_FENCING_TOKEN" >>%[1]s`, file)
		var started []*process
		for i := range processes * runs {
			if i >= processes {
				started[i-processes].want(0)
			}
			started = append(started, start(t, store, "run", "job", "--", "sh", "-c", script))
		}
		for _, p := range started {
			p.want(0)
		}

		lines := strings.Split(strings.TrimSpace(read(t, file)), "\n")
		if len(lines) != 2*processes*runs {
			t.Fatalf("%d marks, want %d", len(lines), 2*processes*runs)
		}
		token := uint64(0)
		for i := 0; i < len(lines); i += 2 {
			var from, to struct {
				word  string
				pid   int
				token uint64
			}
			_, err1 := fmt.Sscan(lines[i], &from.word, &from.pid, &from.token)
			_, err2 := fmt.Sscan(lines[i+1], &to.word, &to.pid, &to.token)
			if err1 != nil || err2 != nil || from.word != "start" || to.word != "end" || from.pid != to.pid {
				t.Fatalf("runs overlap: %q is followed by %q", lines[i], lines[i+1])
			}
			if from.token <= token {
				t.Errorf("token %d follows token %d", from.token, token)
			}
			token = from.token
		}
	})
}

// TestBusy checks what run and check do when another process has the lock.
func TestBusy(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		holder := hold(t, store, "job")

		// A wait of zero is the same as -n.
		for _, flags := range [][]string{{"-n"}, {"-w", "0"}, {"-w", "0s"}} {
			stderr := wantRun(t, 75, store, append(append([]string{"run"}, flags...), "job", "--", "true")...)
			want := regexp.MustCompile(fmt.Sprintf(`(?m)^holdfast: .*"job": held by .*pid %d\b`, holder.cmd.Process.Pid))
			if !want.MatchString(stderr) {
				t.Errorf("run %v: %q does not match %s", flags, stderr, want)
			}
		}
		if stderr := wantRun(t, 9, store, "run", "-q", "-n", "-E", "9", "job", "--", "true"); stderr != "" {
			t.Errorf("run -q says %q", stderr)
		}
		for _, wait := range []string{"1", "1s", "0.5", "500ms"} {
			want := time.Second
			if wait == "0.5" || wait == "500ms" {
				want /= 2
			}
			began := time.Now()
			wantRun(t, 75, store, "run", "-w", wait, "job", "--", "true")
			if took := time.Since(began); took < want || took > want+5*time.Second {
				t.Errorf("run -w %s took %s", wait, took)
			}
		}

		// The holder still has the lock, and another name is another lock.
		wantRun(t, 0, store, "check", "job")
		wantRun(t, 0, store, "run", "-n", "other", "--", "true")
		wantRun(t, 1, store, "check", "other")
	})
}

// TestWaiterGetsTheLock checks that a bounded wait ends with the lock when it
// is released in time.
func TestWaiterGetsTheLock(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		holder := hold(t, store, "job")
		waiter := start(t, store, "run", "-v", "-w", "20", "job", "--", "true")
		waiter.awaitStderr("waiting")
		holder.finish()
		waiter.want(0)
		holder.want(0)
	})
}

// TestMinHold checks that no other process gets a lock before its --min-hold has passed, even if
// the command was short.
func TestMinHold(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		began := time.Now()
		wantRun(t, 0, store, "run", "--min-hold", "3s", "job", "--", "true")
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Logf("slow machine: the command took %s", took)
		} else {
			wantRun(t, 75, store, "run", "-n", "job", "--", "true")
			if s := show(t, store, "job"); s.Held || time.Since(began) < 2500*time.Millisecond && (len(s.Holders) != 1 || !s.Holders[0].Released) {
				t.Errorf("a name that is kept closed is shown as %+v", s)
			}
		}
		wantRun(t, 0, store, "run", "job", "--", "true")
		if took := time.Since(began); took < 3*time.Second {
			t.Errorf("it was granted again after %s", took)
		}
	})
}

// TestMaxHold checks that a command is stopped before its --max-hold has passed, and that the
// status is 124.
func TestMaxHold(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		file := filepath.Join(t.TempDir(), "marks")
		const maxHold = 2 * time.Second
		for _, arguments := range [][]string{
			{"job", "--", "workload", "-depth", "1"},
			{"job", "--", "workload", "-depth", "1", "-deaf"},
			{"--on-lost", "ignore", "job", "--", "workload", "-depth", "1"},
		} {
			began := time.Now()
			p := start(t, store, append(append([]string{"run", "--ttl", "1s", "--max-hold", maxHold.String()}, arguments...), file)...)
			pids := awaitMarks(t, file, 2)
			acquired := readMarks(t, file)[0].at // no later than its first mark
			p.want(124)
			wantGone(t, pids)
			if took := p.ended.Sub(began); took < time.Second {
				t.Errorf("it was stopped after %s of %s", took, maxHold)
			}
			if end := last(t, file).at; end.After(acquired.Add(maxHold)) {
				t.Errorf("it ran for %s, the bound is %s", end.Sub(acquired), maxHold)
			}
			wantRun(t, 1, store, "check", "job")
			file += "2"
		}
	})
}
