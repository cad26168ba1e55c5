//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReadersAndWriters checks that readers hold the lock together, that a writer holds it alone,
// and that readers do not overtake a waiting writer.
func TestReadersAndWriters(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		readers := []*holder{hold(t, store, "job", "-s"), hold(t, store, "job", "-s")}
		wantRun(t, 75, store, "run", "-n", "job", "--", "true")
		wantRun(t, 0, store, "run", "-n", "-s", "job", "--", "true")
		s := show(t, store, "job")
		if s.Mode != "shared" || len(s.Holders) != 2 || s.Holders[0].FencingToken >= s.Holders[1].FencingToken {
			t.Fatalf("two readers are shown as %+v", s)
		}
		for i, r := range readers {
			if got := s.Holders[i].PID; got != r.cmd.Process.Pid {
				t.Errorf("reader %d is process %d, want %d", i+1, got, r.cmd.Process.Pid)
			}
		}

		file := filepath.Join(t.TempDir(), "written")
		writer := enqueue(t, 1, store, "job", "-x", "job", "--", "sh", "-c", "touch "+file+"; until test -e "+file+"2; do sleep 0.02; done")
		wantRun(t, 75, store, "run", "-n", "-s", "job", "--", "true")
		late := enqueue(t, 2, store, "job", "-s", "job", "--", "test", "-e", file)
		for _, r := range readers {
			r.finish()
			r.want(0)
		}
		awaitFile(t, file)
		wantRun(t, 75, store, "run", "-n", "-s", "job", "--", "true")
		if s := show(t, store, "job"); s.Mode != "exclusive" || len(s.Holders) != 1 || s.Holders[0].PID != writer.cmd.Process.Pid {
			t.Errorf("the writer's lock is shown as %+v", s)
		}
		touch(t, file+"2")
		writer.want(0)
		late.want(0)
	})
}

// TestSlots checks that the permits of all runs together never exceed the slots of a name, and that
// a small run does not overtake a large one.
func TestSlots(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		large := hold(t, store, "job", "--slots", "4", "--permits", "3")
		small := hold(t, store, "job", "--slots", "4")
		wantRun(t, 75, store, "run", "-n", "--slots", "4", "job", "--", "true")
		s := show(t, store, "job")
		if s.Mode != "semaphore" || s.Limit != 4 || len(s.Holders) != 2 || s.Holders[0].Permits != 3 || s.Holders[1].Permits != 1 {
			t.Errorf("the slots are shown as %+v", s)
		}
		for _, flags := range [][]string{{"-x"}, {"-s"}, {"--slots", "3"}, {"--slots", "5"}} {
			stderr := wantRun(t, 78, store, append(append([]string{"run", "-n"}, flags...), "job", "--", "true")...)
			if !strings.Contains(stderr, "the name is ") && !strings.Contains(stderr, "the semaphore has ") || !strings.Contains(stderr, "limit") {
				t.Errorf("run %v: %q does not say what the name is", flags, stderr)
			}
		}

		small.finish()
		small.want(0)
		wantRun(t, 75, store, "run", "-n", "--slots", "4", "--permits", "2", "job", "--", "true")
		wantRun(t, 0, store, "run", "-n", "--slots", "4", "job", "--", "true")
		waiter := enqueue(t, 1, store, "job", "--slots", "4", "--permits", "2", "job", "--", "true")
		if s := show(t, store, "job"); s.Queue[0].Mode != "semaphore" || s.Queue[0].Permits != 2 {
			t.Errorf("the waiter is shown as %+v", s.Queue)
		}
		wantRun(t, 75, store, "run", "-n", "--slots", "4", "job", "--", "true") // one slot is free, but the waiter comes first
		large.finish()
		large.want(0)
		waiter.want(0)
		wantRun(t, 0, store, "run", "-n", "--slots", "5", "job", "--", "true")
	})
}

// TestModesNeverClash runs readers and writers, and users of slots, at the same time. They must
// never take more than there is. How many work together depends on the machine;
// TestReadersAndWriters and TestSlots check that they can.
func TestModesNeverClash(t *testing.T) {
	const processes, runs = 5, 4 // processes at a time, and runs of each
	t.Parallel()
	for what, c := range map[string]struct {
		flags [][]string // of each kind of run, in turn
		costs []int      // what a run of each kind takes
		whole int        // what there is in all
	}{
		"readers and writers": {[][]string{{"-s"}, {"-s"}, {"-x"}, {"-s"}}, []int{1, 1, 100, 1}, 100},
		"slots":               {[][]string{{"--slots", "3"}, {"--slots", "3", "--permits", "2"}}, []int{1, 2}, 3},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			eachStore(t, func(t *testing.T, store string) {
				file := filepath.Join(t.TempDir(), "marks")
				var started []*process
				for i := range processes * runs {
					if i >= processes {
						started[i-processes].want(0)
					}
					kind := i % len(c.flags)
					script := fmt.Sprintf("echo %d >>%[2]s; sleep 0.05; echo -%[1]d >>%[2]s", c.costs[kind], file)
					started = append(started, start(t, store, append(append([]string{"run"}, c.flags[kind]...), "job", "--", "sh", "-c", script)...))
				}
				for _, p := range started {
					p.want(0)
				}
				taken, marks := 0, strings.Fields(read(t, file))
				if len(marks) != 2*processes*runs {
					t.Fatalf("%d marks, want %d", len(marks), 2*processes*runs)
				}
				for i, m := range marks {
					var n int
					if _, err := fmt.Sscan(m, &n); err != nil {
						t.Fatal(err)
					}
					taken += n
					if taken > c.whole {
						t.Fatalf("%d of %d are taken after %v", taken, c.whole, marks[:i+1])
					}
				}
			})
		})
	}
}

// TestQueue checks that waiting processes are shown and served in order, each with a full TTL.
func TestQueue(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		holder := hold(t, store, "job")
		file := filepath.Join(t.TempDir(), "served")
		var waiters []*process
		for i := range 3 {
			script := fmt.Sprintf("echo %d $HOLDFAST_FENCING_TOKEN >>%s; holdfast show job --json >%[2]s%[1]d", i+1, file)
			reason := fmt.Sprintf("waiter %d", i+1)
			waiters = append(waiters, enqueue(t, i+1, store, "job", "--reason", reason, "job", "--", "sh", "-c", script))
		}

		s := show(t, store, "job")
		for i, place := range s.Queue {
			if place.PID != waiters[i].cmd.Process.Pid || place.Reason != fmt.Sprintf("waiter %d", i+1) || place.Mode != "exclusive" ||
				place.ExpiresInMS <= 0 || place.ExpiresInMS > 5000 {
				t.Errorf("place %d is shown as %+v", i+1, place)
			}
			if i > 0 && place.WaitingMS >= s.Queue[i-1].WaitingMS {
				t.Errorf("place %d waits for %d ms, the one before it for %d ms", i+1, place.WaitingMS, s.Queue[i-1].WaitingMS)
			}
		}
		_, text, _ := run(t, store, "show", "job")
		wanted := `(?s)\n  queue +1\. .*, exclusive, waiting for .*s: waiter 1\n  queue +2\. .*: waiter 2\n  queue +3\. .*: waiter 3\n$`
		if !regexp.MustCompile(wanted).MatchString(text) {
			t.Errorf("show says\n%s", text)
		}
		if _, text, _ := run(t, store, "ls"); !regexp.MustCompile(`(?m)^job\t[^\t]+\t[^\t]+\t[^\t]+\t3\t`).MatchString(text) {
			t.Errorf("ls says\n%s", text)
		}
		if _, text, _ := run(t, store, "ls", "--json"); !strings.Contains(text, `"queue_length": 3`) || strings.Contains(text, `"queue":`) {
			t.Errorf("ls --json says\n%s", text)
		}

		holder.finish()
		holder.want(0)
		for _, w := range waiters {
			w.want(0)
		}
		token := s.LastToken
		for i, line := range strings.Split(strings.TrimSpace(read(t, file)), "\n") {
			var number int
			var next uint64
			if _, err := fmt.Sscan(line, &number, &next); err != nil || number != i+1 || next <= token {
				t.Errorf("number %d to be served, after token %d: %q", i+1, token, line)
			}
			token = next
		}
		// The command starts with the whole TTL, or holdfast could not stop it in time.
		for i := range waiters {
			held := decode(t, read(t, fmt.Sprintf("%s%d", file, i+1)))
			if len(held.Holders) != 1 || *held.Holders[0].ExpiresInMS < 20_000 {
				t.Errorf("waiter %d held the lock as %+v", i+1, held)
			}
		}
		if s := show(t, store, "job"); s.Held || s.QueueLength != 0 {
			t.Errorf("at the end the lock is %+v", s)
		}
	})
}

// TestHandOver checks that waiters do not learn of a release by polling: most have the lock long
// before their next request, which is a second and a half after the first.
func TestHandOver(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		const rounds = 5
		file := filepath.Join(t.TempDir(), "marks")
		var took []time.Duration
		for i := range rounds {
			first := hold(t, store, "job")
			marks := fmt.Sprintf("%s%d", file, i)
			second := enqueue(t, 1, store, "job", "job", "--", "workload", "-for", "20ms", marks)
			first.finish()
			first.want(0)
			second.want(0)
			took = append(took, readMarks(t, marks)[0].at.Sub(first.ended))
		}
		slices.Sort(took)
		t.Logf("from the end of one holdfast to the first mark of the next command: %v", took)
		if took[rounds/2] > 500*time.Millisecond {
			t.Errorf("hand-overs took %v", took)
		}
	})
}

// TestWaiterDies kills the first of the queue. Its place may delay the next by the rest of its
// time, five seconds at most, and not by its TTL.
func TestWaiterDies(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		const place, slack = 5 * time.Second, 2 * time.Second
		holder := hold(t, store, "job")
		file := filepath.Join(t.TempDir(), "never")
		first := enqueue(t, 1, store, "job", "--ttl", "10m", "job", "--", "touch", file)
		second := enqueue(t, 2, store, "job", "--ttl", "10m", "job", "--", "true")
		first.signal(syscall.SIGKILL)
		first.want(128 + int(syscall.SIGKILL))
		holder.finish()
		holder.want(0)
		second.want(0)
		if took := second.ended.Sub(first.ended); took > place+slack {
			t.Errorf("the dead waiter delayed the next by %s", took)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("the command of the dead waiter ran")
		}
		wantRun(t, 0, store, "run", "-n", "job", "--", "true")
	})
}

// TestWaiterIsPaused stops the first of the queue until another process has been served. It must
// not rely on a grant that it received meanwhile, and must be served in the end.
func TestWaiterIsPaused(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		dir := t.TempDir()
		mine, others := filepath.Join(dir, "mine"), filepath.Join(dir, "others")
		holder := hold(t, store, "job")
		first := enqueue(t, 1, store, "job", "--ttl", "1s", "job", "--", "workload", "-for", "50ms", mine)
		pause(t, store, first)
		holder.finish()
		holder.want(0)
		next := start(t, store, "run", "-w", "30", "job", "--", "workload", "-for", "1s", others)
		awaitMarks(t, others, 1)
		first.signal(syscall.SIGCONT)
		first.want(0)
		next.want(0)
		wantAfter(t, mine, last(t, others))
	})
}

// pause stops a process between two of its requests: during a request it might keep the file of the
// embedded store locked.
func pause(t *testing.T, store string, p *process) {
	t.Helper()
	pid := p.cmd.Process.Pid
	writes := regexp.MustCompile(fmt.Sprintf(`POSIX +ADVISORY +WRITE +%d `, pid))
	eventually(t, "the store can be written to while a process is stopped", func() bool {
		p.signal(syscall.SIGSTOP)
		eventually(t, "it is stopped", func() bool { return strings.HasPrefix(inState(t, pid), "T") })
		locks, _ := os.ReadFile("/proc/locks") // only on Linux; it spares a request that would have to wait
		if !writes.Match(locks) {
			if status, _, _ := run(t, store, "run", "-n", "another", "--", "true"); status == 0 {
				return true
			}
		}
		p.signal(syscall.SIGCONT)
		return false
	})
}
