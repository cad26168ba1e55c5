package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// pidIn waits for a file with a process ID, and returns the ID.
func pidIn(t *testing.T, file string) (pid int) {
	t.Helper()
	eventually(t, file+" has a number", func() bool {
		data, _ := os.ReadFile(file)
		var err error
		pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	})
	return pid
}

// TestEarlierChildrenLiveOn checks that children that a process had before it became holdfast are
// not part of the job, however the job ends. Their orphans, which holdfast adopts, are not part of
// it either.
func TestEarlierChildrenLiveOn(t *testing.T) {
	t.Parallel()
	ends := map[string]func(p *process){
		"by itself":          func(p *process) { touch(t, p.stderr+"-finish") },
		"TERM":               func(p *process) { p.signal(syscall.SIGTERM) },
		"KILL of the warden": func(p *process) { kill(t, wardenOf(t, p.cmd.Process.Pid)) },
		"KILL":               func(p *process) { p.signal(syscall.SIGKILL) },
	}
	for what, end := range ends {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			before, orphan, job := filepath.Join(dir, "before"), filepath.Join(dir, "orphan"), filepath.Join(dir, "job")
			// The second of the earlier children leaves an orphan when the job runs.
			p := startShell(t, sqlite(t), fmt.Sprintf(`
				sh -c 'echo $$ >%[1]s; exec sleep 60' &
				sh -c 'until test -e %[3]s; do sleep 0.02; done; sh -c "echo \$\$ >%[2]s; exec sleep 60" & exit' &
				exec holdfast run --kill-after 200ms job -- sh -c 'setsid sh -c "echo \$\$ >%[3]s; exec sleep 60" & until test -e $0; do sleep 0.02; done' `+
				`"$0-finish"`, before, orphan, job))
			pids := []int{pidIn(t, before), pidIn(t, orphan)}
			member := pidIn(t, job)
			eventually(t, "the orphan is adopted", func() bool { return parentOf(t, pids[1]) == p.cmd.Process.Pid })
			end(p)
			p.wait()
			for _, pid := range pids {
				if !alive(t, pid) {
					t.Errorf("process %d is not of the job and was ended", pid)
				}
				kill(t, pid)
			}
			if what == "by itself" {
				kill(t, member)
				return
			}
			eventually(t, "the job is gone", func() bool { return !alive(t, member) })
		})
	}
}

// startShell starts a script that becomes holdfast. Its $0 is the file to which
// standard error goes.
func startShell(t *testing.T, store, script string) *process {
	t.Helper()
	return startProgram(t, store, "sh", func(p *process) []string { return []string{"-c", script, p.stderr} })
}

// parentOf returns the parent of a process.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	parent, err := strconv.Atoi(stat(t, pid)[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

// stateOf returns the state of a process, as in proc(5).
func stateOf(t *testing.T, pid int) string {
	t.Helper()
	return stat(t, pid)[0]
}

// stat returns the fields of /proc/PID/stat, from the state on.
func stat(t *testing.T, pid int) []string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.Fields(rest)
}

// TestSignalReachesEachOnce sends TERM to holdfast. Each member of the job must receive TERM once,
// in whatever session or group it is, even if a nested holdfast supervises it. Processes that
// members start to clean up must not receive TERM.
func TestSignalReachesEachOnce(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), sqlite(t)
	// Each member logs every TERM, cleans up in a process of its own, and ends.
	write(t, filepath.Join(dir, "member.sh"), `
		trap 'echo $1 >>$0-terms; sh -c "trap \"echo cleanup >>$0-terms\" TERM; sleep 0.3; echo done >>$0-done"; exit 0' TERM
		echo $1 >>$0-ready
		while :; do sleep 0.02; done`)
	member := "sh " + filepath.Join(dir, "member.sh")
	p := start(t, store, "run", "--ttl", "30s", "job", "--", "sh", "-c",
		"setsid "+member+" session & (setsid "+member+" daemon &); set -m; "+member+" group & "+
			"holdfast run other -- "+member+" nested & exec "+member+" command")
	lines := func(file string) map[string]int {
		data, _ := os.ReadFile(filepath.Join(dir, "member.sh-"+file))
		count := map[string]int{}
		for _, line := range strings.Fields(string(data)) {
			count[line]++
		}
		return count
	}
	eventually(t, "all are there", func() bool { return len(lines("ready")) == 5 })
	p.signal(syscall.SIGTERM)
	p.want(0)
	if got, want := fmt.Sprint(lines("terms")), "map[command:1 daemon:1 group:1 nested:1 session:1]"; got != want {
		t.Errorf("TERM was heard by %s, want %s", got, want)
	}
	if n := lines("done")["done"]; n != 5 {
		t.Errorf("%d of 5 cleaned up", n)
	}
}

// TestNestedJob checks that a job within a job ends with the outer job: its own supervisor ends it
// on TERM, and on KILL both are killed.
func TestNestedJob(t *testing.T) {
	t.Parallel()
	for what, flags := range map[string][]string{"TERM": {"--kill-after", "2s"}, "KILL": {"--kill-after", "0s"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store, file := sqlite(t), filepath.Join(t.TempDir(), "marks")
			args := append(append([]string{"run", "--ttl", "10s"}, flags...), "outer", "--", "holdfast", "run", "--ttl", "10s", "--kill-after", "100ms", "inner", "--")
			p := start(t, store, append(args, "sh", "-c", "setsid workload -deaf "+file+" & wait")...)
			pids := awaitMarks(t, file, 1)
			p.signal(syscall.SIGTERM)
			p.wait()
			wantGone(t, pids)
			if what == "TERM" { // the inner holdfast ended normally and released its lock
				wantRun(t, 0, store, "run", "-n", "inner", "--", "true")
			}
			wantRun(t, 0, store, "run", "-n", "outer", "--", "true")
		})
	}
}

// TestWaitChildren checks that the lock is held until the processes that a command leaves behind
// have ended, as with flock(1), whose descriptor they inherit.
func TestWaitChildren(t *testing.T) {
	t.Parallel()
	store, dir := sqlite(t), t.TempDir()
	finish := filepath.Join(dir, "finish")
	p := start(t, store, "run", "--wait-children", "--ttl", "1s", "job", "--", "sh", "-c",
		"setsid sh -c 'until test -e "+finish+"; do sleep 0.02; done; touch "+finish+"ed' & echo $$ >"+dir+"/pid; exit 5")
	command := pidIn(t, dir+"/pid")
	eventually(t, "the command has ended", func() bool { return !alive(t, command) })
	time.Sleep(1500 * time.Millisecond) // longer than the TTL
	wantRun(t, 75, store, "run", "-n", "job", "--", "true")
	touch(t, finish)
	p.want(5)
	if _, err := os.Stat(finish + "ed"); err != nil {
		t.Errorf("the lock was given back before the last of the job had ended: %v", err)
	}
	if text := read(t, p.stderr); text != "" {
		t.Errorf("it says %q", text)
	}

	// TERM ends what is left.
	p = start(t, store, "run", "--wait-children", "--kill-after", "100ms", "job", "--", "sh", "-c",
		"setsid sh -c 'trap : TERM; echo $$ >"+dir+"/left; while :; do sleep 0.02; done' & echo $$ >"+dir+"/second")
	left, command := pidIn(t, dir+"/left"), pidIn(t, dir+"/second")
	eventually(t, "the command has ended", func() bool { return !alive(t, command) })
	p.signal(syscall.SIGTERM)
	p.want(0)
	wantGone(t, []int{left})
}

// TestLeftBehindIsNamed checks that a message names the processes that a command leaves behind when
// it ends by itself, because they continue without the lock.
func TestLeftBehindIsNamed(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"run", "once"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			store, file := sqlite(t), filepath.Join(t.TempDir(), "pid")
			stderr := wantRun(t, 0, store, verb, "job", "--", "sh", "-c",
				"setsid sleep 60 </dev/null >/dev/null 2>&1 & echo $! >"+file)
			pid := pidIn(t, file)
			want := regexp.MustCompile(fmt.Sprintf(`^holdfast: %s "job": .* work on without the lock: sleep \(pid %d\) \(--wait-children .*\)\n$`, verb, pid))
			if !want.MatchString(stderr) {
				t.Errorf("it says %q, want %s", stderr, want)
			}
			if !alive(t, pid) {
				t.Error("it was ended")
			}
			kill(t, pid)
		})
	}
	// A process that ends together with the command is not named. On a busy machine this may take
	// several tries.
	store := sqlite(t)
	eventually(t, "nobody is named", func() bool {
		return wantRun(t, 0, store, "run", "job", "--", "sh", "-c", "sleep 0.01 & exit 0") == ""
	})
}

// TestKilledCommandLeavesNothing checks that the children of a command end, too, when another
// process kills the command.
func TestKilledCommandLeavesNothing(t *testing.T) {
	t.Parallel()
	store, file := sqlite(t), filepath.Join(t.TempDir(), "marks")
	p := start(t, store, "run", "--kill-after", "200ms", "job", "--", "sh", "-c", "setsid workload -deaf "+file+" & until test -s "+file+"; do sleep 0.02; done; kill -KILL $$")
	p.want(137)
	pids := awaitMarks(t, file, 1)
	wantGone(t, pids)
	wantRun(t, 0, store, "run", "-n", "job", "--", "true")
}

// TestContinuedRightAfterTheWarden continues holdfast as soon as the warden has killed its job. The
// status and a message must report that the lock was lost, although holdfast sees at once that the
// command has ended and no process is left.
func TestContinuedRightAfterTheWarden(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pid")
			p := start(t, sqlite(t), "run", "--ttl", "600ms", "job", "--", "sh", "-c", "echo $$ >$0; exec sleep 60", file)
			pid := pidIn(t, file)
			p.signal(syscall.SIGSTOP)
			eventually(t, "the warden has killed the command", func() bool { return !alive(t, pid) })
			p.signal(syscall.SIGCONT)
			p.want(79)
			if text := read(t, p.stderr); !strings.Contains(text, `run "job": `) {
				t.Errorf("it says %q", text)
			}
		})
	}
}

// TestEndsSoonAfterALoss checks that holdfast ends soon after its job when the store does not
// answer.
func TestEndsSoonAfterALoss(t *testing.T) {
	t.Parallel()
	for verb, args := range map[string][]string{"run": nil, "once": nil} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			server, file := testsvc.Redis(t), filepath.Join(t.TempDir(), "marks")
			const ttl = 2 * time.Second
			p := start(t, server.URL, append(append([]string{verb, "--ttl", ttl.String()}, args...), "job", "--", "workload", file)...)
			pids := awaitMarks(t, file, 1)
			server.Stop()
			eventually(t, "the job is gone", func() bool { return !alive(t, pids[0]) })
			gone := time.Now()
			p.want(79)
			// The test starts two processes to see that the job is gone, and a busy machine needs
			// slack. If holdfast waited for the store, its end would take seconds.
			if took := p.ended.Sub(gone); took > 300*time.Millisecond+time.Second {
				t.Errorf("it ended %s after its job", took)
			} else {
				t.Logf("it ended %s after its job", took)
			}
		})
	}
}

// TestStoppedWardenIsContinued checks that holdfast continues a stopped warden, without which it
// would not see the end of the command.
func TestStoppedWardenIsContinued(t *testing.T) {
	t.Parallel()
	h := hold(t, sqlite(t), "job")
	if err := syscall.Kill(wardenOf(t, h.cmd.Process.Pid), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	h.finish()
	h.want(0)
}

// TestWaitingWardenIsReplaced checks that the command runs even if its warden was killed or stopped
// while run waited for the lock.
func TestWaitingWardenIsReplaced(t *testing.T) {
	t.Parallel()
	for what, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store := sqlite(t)
			h := hold(t, store, "job")
			p := enqueue(t, 1, store, "job", "job", "--", "sh", "-c", "exit 5")
			warden := wardenOf(t, p.cmd.Process.Pid)
			if err := syscall.Kill(warden, sig); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the signal has reached each thread of the warden", func() bool {
				threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", warden))
				state := stateOf(t, warden)
				return err == nil && (strings.Contains(state, "T") || strings.Contains(state, "Z") && len(threads) == 1)
			})
			h.finish()
			h.want(0)
			p.want(5)
		})
	}
}

// TestSignalToTheParent checks that a signal to the command's parent, which is the warden, has the
// effect of a signal to holdfast.
func TestSignalToTheParent(t *testing.T) {
	t.Parallel()
	status, _, stderr := run(t, sqlite(t), "run", "job", "--", "sh", "-c", "trap 'exit 7' TERM; kill $PPID; while :; do sleep 0.02; done")
	if status != 7 {
		t.Errorf("status %d, want 7\n%s", status, stderr)
	}
}
