//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// lines returns the number of lines of a file, and 0 if there is no file.
func lines(t *testing.T, file string) int {
	t.Helper()
	if _, err := os.Stat(file); os.IsNotExist(err) {
		return 0
	}
	return strings.Count(read(t, file), "\n")
}

// replayed returns the recorded result of a key.
func replayed(t *testing.T, store, key string) string {
	t.Helper()
	status, stdout, stderr := run(t, store, "once", key, "--replay", "--", "echo", "it has run again")
	if status != 0 {
		t.Errorf("once %s --replay: status %d\n%s", key, status, stderr)
	}
	return stdout
}

// oneByOne is eachStore for a test that keeps all processors busy by itself.
func oneByOne(t *testing.T, test func(t *testing.T, store string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, sqlite(t)) })
	t.Run("redis", func(t *testing.T) { test(t, testsvc.Redis(t).URL) })
}

// TestOnceRace starts many processes at once. The command runs once, and processes that wait get
// its output. A process for which the store is too busy ends with status 69, and the test starts it
// again.
func TestOnceRace(t *testing.T) {
	const processes = 64
	oneByOne(t, func(t *testing.T, store string) {
		for _, wait := range []bool{false, true} {
			dir := t.TempDir()
			runs, proceed := filepath.Join(dir, "runs"), filepath.Join(dir, "proceed")
			key := fmt.Sprintf("job/%t", wait)
			args := []string{"once", key, "-n"}
			if wait {
				args = []string{"once", key, "--replay"}
			}
			args = append(args, "--", "sh", "-c", "echo run >>"+runs+"; until test -e "+proceed+"; do sleep 0.05; done; echo result of $$; printf 'no newline \\000'")
			var started []*process
			for range processes {
				started = append(started, start(t, store, args...))
			}
			touch(t, proceed)
			statuses, outputs, again, unrecorded := map[int]int{}, map[string]int{}, 0, 0
			for _, p := range started {
				for ; p.wait() == 69; again++ {
					if read(t, p.stdout) != "" {
						unrecorded++ // it ran, and the store was too busy to record the result
					}
					p = start(t, store, args...)
				}
				statuses[p.wait()]++
				outputs[read(t, p.stdout)]++
			}
			result := replayed(t, store, key)
			t.Logf("%d processes, waiting and with --replay: %t: %d runs, statuses %v, %d of them wrote %q; %d times the store was too busy",
				processes, wait, lines(t, runs), statuses, outputs[result], result, again)
			if n := lines(t, runs); n < 1 || n > 1+unrecorded {
				t.Errorf("it ran %d times, of which %d could not be recorded", n, unrecorded)
			}
			if !strings.HasPrefix(result, "result of ") || !strings.HasSuffix(result, "no newline \x00") {
				t.Errorf("the result is %q", result)
			}
			switch {
			case wait && (statuses[0] != processes || outputs[result] != processes):
				t.Errorf("%d ended with 0 and %d got the output, of %d", statuses[0], outputs[result], processes)
			case !wait && (statuses[0] == 0 || statuses[0]+statuses[75] != processes || outputs[result] != 1 || outputs[""] != processes-1):
				t.Error("want one that runs it, and the others to leave with 0 or 75 and no output")
			}
		}
	})
}

// TestOnceFails has the command fail three times while several processes wait. Each failure is
// reported to the process that ran the command, and the next waiter runs it.
func TestOnceFails(t *testing.T) {
	const processes, failures = 10, 3
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		runs := filepath.Join(t.TempDir(), "runs")
		script := fmt.Sprintf(`echo run >>%s; sleep 0.1; echo half; test $(wc -l <%[1]s) -gt %d || exit 7; echo whole`, runs, failures)
		var started []*process
		for range processes {
			started = append(started, start(t, store, "once", "job", "--replay", "--", "sh", "-c", script))
		}
		statuses, whole := map[int]int{}, 0
		for _, p := range started {
			statuses[p.wait()]++
			if read(t, p.stdout) == "half\nwhole\n" {
				whole++
			}
		}
		t.Logf("%d processes, %d failures: %d runs, statuses %v, %d whole outputs", processes, failures, lines(t, runs), statuses, whole)
		if n := lines(t, runs); n != failures+1 || statuses[7] != failures || statuses[0] != processes-failures || whole != statuses[0] {
			t.Errorf("it ran %d times, statuses %v, %d whole outputs", n, statuses, whole)
		}
	})
}

// TestOnceRunnerIsKilled kills holdfast while its command runs. The command must end, and the next
// caller must run it after the lease has expired, not only after the retention.
func TestOnceRunnerIsKilled(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		const ttl, slack = 2 * time.Second, 3 * time.Second
		dir := t.TempDir()
		first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
		p := start(t, store, "once", "job", "--ttl", ttl.String(), "--retention", "1h", "--", "workload", "-depth", "1", first)
		pids := awaitMarks(t, first, 2)
		wantRun(t, 75, store, "once", "status", "job")
		p.signal(syscall.SIGKILL)
		killed := time.Now()
		p.want(128 + int(syscall.SIGKILL))
		next := start(t, store, "once", "job", "--", "workload", "-for", "50ms", second)
		next.want(0)
		wantGone(t, pids)
		wantAfter(t, second, last(t, first))
		began := readMarks(t, second)[0].at
		t.Logf("ttl %s, retention 1h: the next ran it %s after the runner was killed", ttl, began.Sub(killed).Round(time.Millisecond))
		if took := began.Sub(killed); took > ttl+slack {
			t.Errorf("the next ran it after %s", took)
		}
		wantRun(t, 0, store, "once", "status", "job")
	})
}

// TestOnceZombie stops holdfast while its command continues to its end, until the lease has expired
// and another process has done the work. The late result must be refused.
func TestOnceZombie(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		const ttl = 5 * time.Second
		dir := t.TempDir()
		started, proceed, ended := filepath.Join(dir, "started"), filepath.Join(dir, "proceed"), filepath.Join(dir, "ended")
		zombie := start(t, store, "once", "job", "--ttl", ttl.String(), "--", "sh", "-c",
			"touch "+started+"; until test -e "+proceed+"; do sleep 0.02; done; echo first; touch "+ended)
		awaitFile(t, started)
		pause(t, store, zombie)
		touch(t, proceed)
		awaitFile(t, ended)
		second := start(t, store, "once", "job", "--", "echo", "second")
		second.want(0)
		zombie.signal(syscall.SIGCONT)
		zombie.want(79)
		result := replayed(t, store, "job")
		t.Logf("the zombie's command had succeeded; its status is %d, the result is %q\n%s", zombie.wait(), result, read(t, zombie.stderr))
		if result != "second\n" {
			t.Errorf("the result is %q", result)
		}
		if message := read(t, zombie.stderr); !strings.Contains(message, `holdfast: once "job": `) {
			t.Errorf("the message is %q", message)
		}
	})
}

// TestOnceIsLost breaks the lease of a command that does not end by itself.
func TestOnceIsLost(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		file := filepath.Join(t.TempDir(), "marks")
		p := start(t, store, "once", "job", "--ttl", "2s", "--kill-after", "100ms", "--", "workload", "-deaf", "-depth", "1", file)
		pids := awaitMarks(t, file, 2)
		wantRun(t, 0, store, "break", "job", "--reason", "by a test")
		p.want(79)
		wantGone(t, pids)
		wantRun(t, 1, store, "once", "status", "job")
	})
}

// TestOnceSignals sends TERM to a once that waits, and to one whose command runs.
func TestOnceSignals(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		file := filepath.Join(t.TempDir(), "marks")
		worker := start(t, store, "once", "job", "--kill-after", "300ms", "--", "sh", "-c", "workload -deaf "+file+" & workload "+file+" & wait")
		pids := awaitMarks(t, file, 2)
		waiter := start(t, store, "once", "job", "-v", "--", "touch", file+"2")
		waiter.awaitStderr("waiting")
		waiter.signal(syscall.SIGTERM)
		waiter.want(128 + int(syscall.SIGTERM))
		worker.signal(syscall.SIGTERM)
		worker.want(128 + int(syscall.SIGTERM))
		wantGone(t, pids)
		wantRun(t, 1, store, "once", "status", "job")
		if _, err := os.Stat(file + "2"); err == nil {
			t.Error("the command of the waiter ran")
		}
	})
}

// TestOnceReaders checks that the whole output is recorded at once, even if no process reads
// standard output, or its reader has closed it.
func TestOnceReaders(t *testing.T) {
	const want = 588895 // bytes
	t.Parallel()
	for _, stays := range []bool{true, false} {
		t.Run(fmt.Sprintf("stays=%t", stays), func(t *testing.T) {
			store := sqlite(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			cmd := exec.Command("holdfast", "once", "--store", store, "job", "--", "seq", "100000")
			cmd.Stdout = w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close() // the process has its own copy
			if !stays {
				_ = r.Close()
			}
			eventually(t, "the work is recorded", func() bool {
				status, _, _ := run(t, store, "once", "status", "job")
				return status == 0
			})
			if stays { // it still has most of the output to write
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait() // its status is read from ProcessState
			ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if stays && ws.ExitStatus() != 143 || !stays && ws.ExitStatus() != 0 {
				t.Errorf("wait status %#x", ws)
			}
			if result := replayed(t, store, "job"); len(result) != want || !strings.HasSuffix(result, "\n100000\n") {
				t.Errorf("%d bytes are recorded, want %d", len(result), want)
			}
		})
	}
}
