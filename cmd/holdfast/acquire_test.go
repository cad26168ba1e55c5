//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// acquires is how a script acquires a lock, as docs show it; %s stands for flags and name.
const acquires = `eval "$(holdfast acquire --pid $$ %s || echo exit $?)"; `

// script starts a shell that acquires the lock job and then runs the commands of then. It returns
// when the shell has the lock.
func script(t *testing.T, shell, store, flags, then string) (p *process, dir string) {
	t.Helper()
	dir = t.TempDir()
	text := fmt.Sprintf(acquires, flags+" job") + "echo $HOLDFAST_SOCKET >" + dir + "/socket; mv " + dir + "/socket " + dir + "/ready; " + then
	p = startProgram(t, store, shell, func(*process) []string { return []string{"-c", "cd " + dir + "; " + text} })
	eventually(t, "the script has the lock", func() bool {
		select {
		case <-p.done:
			t.Fatalf("the script ended with status %d: %s", p.wait(), read(t, p.stderr))
		default:
		}
		_, err := os.Stat(filepath.Join(dir, "ready"))
		return err == nil
	})
	t.Cleanup(func() {
		pid := keeperOf(t, dir)
		if t.Failed() && strings.Contains(processName(pid), "holdfast") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return p, dir
}

// processName returns the command line of a process, or "" if the process has ended.
func processName(pid int) string {
	out, _ := exec.Command("ps", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	return string(out)
}

// keeperOf returns the process ID of a script's keeper, which is in the name of its socket.
func keeperOf(t *testing.T, dir string) int {
	t.Helper()
	number, _, _ := strings.Cut(filepath.Base(read(t, filepath.Join(dir, "ready"))), "-")
	pid, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func signalTo(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

// waits returns a script that runs command and then waits until the file end exists.
func waits(command string) string { return command + "; until test -e end; do sleep 0.01; done" }

// TestKeeperFreesTheLock checks that the lock of a killed script is free within 200 ms; by the TTL
// it would take half a minute. The best of ten tries counts, because the machine may be busy.
func TestKeeperFreesTheLock(t *testing.T) {
	server := testsvc.Redis(t)
	const promised = 200 * time.Millisecond
	best := time.Hour
	for range 10 {
		p, dir := script(t, "dash", server.URL, "", "exec sleep 60")
		keeper := keeperOf(t, dir)
		p.signal(syscall.SIGKILL)
		began := time.Now()
		eventually(t, "the lock is free", func() bool { return redisInt(t, server, "EXISTS", "job") == 0 })
		best = min(best, time.Since(began))
		eventually(t, "the keeper has ended", func() bool { return gone(t, []int{keeper}) })
		if best < promised/4 {
			break
		}
	}
	t.Logf("the lock of a killed script is free after %s", best)
	if best > promised {
		t.Errorf("the lock is free %s after the script was killed, want %s", best, promised)
	}
}

// TestKilledAcquire kills acquire at many moments. Then the script must not continue, in any shell,
// and the lock must expire with its TTL. If acquire ended before the kill, the script has its lock.
func TestKilledAcquire(t *testing.T) {
	for _, shell := range []string{"bash", "bash -e", "dash", "dash -e"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			server := testsvc.Redis(t)
			words := strings.Fields(shell)
			went, killed := 0, 0
			for after := 2 * time.Millisecond; after < 60*time.Millisecond; after += 2 * time.Millisecond {
				text := fmt.Sprintf(`eval "$(timeout -s KILL %f holdfast acquire --ttl 500ms --pid $$ job || echo exit $?)"; holdfast check -q || exit 99; exit 42`, after.Seconds())
				p := startProgram(t, server.URL, words[0], func(*process) []string { return append(append([]string{}, words[1:]...), "-c", text) })
				switch status := p.wait(); status {
				case 42:
					went++
				case 137:
					killed++
				default:
					t.Fatalf("killed after %s: the script ended with status %d: %s", after, status, read(t, p.stderr))
				}
				if left := time.Duration(redisInt(t, server, "PTTL", "job")) * time.Millisecond; left > 500*time.Millisecond {
					t.Errorf("killed after %s: the lock lasts for another %s", after, left)
				}
				eventually(t, "the lock is free", func() bool { return redisInt(t, server, "EXISTS", "job") == 0 })
			}
			t.Logf("%d were killed, %d had the lock", killed, went)
			if killed == 0 {
				t.Error("none was killed")
			}
		})
	}
}

// TestScriptHearsOfTheLossInTime checks that a script whose store is cut off gets TERM before
// another client can acquire its lock.
func TestScriptHearsOfTheLossInTime(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	const ttl = 3 * time.Second
	p, dir := script(t, "dash", server.URL, "--ttl "+ttl.String(), waits("trap 'touch told; exit 7' TERM"))
	expiry := freeze(t, server, "job", ttl)
	p.want(7)
	info, err := os.Stat(filepath.Join(dir, "told"))
	if err != nil {
		t.Fatal(err)
	}
	if early := expiry.Sub(info.ModTime()); early < ttl/4 {
		t.Errorf("the script was notified %s before its lock ended", early)
	}
}

// TestScriptHearsOfABreak checks that a script whose lock is broken gets TERM with the next
// renewal, within a third of the TTL, and that check then reports the reason.
func TestScriptHearsOfABreak(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		p, _ := script(t, "dash", store, "--ttl 3s", waits("trap 'holdfast check; exit $?' TERM"))
		wantRun(t, 0, store, "break", "job", "--reason", "its node is gone")
		p.want(79)
		p.awaitStderr("its node is gone")
		wantRun(t, 0, store, "run", "-n", "job", "--", "true")
	})
}

// TestStuckScriptIsTold checks that a script that stops sending heartbeats gets TERM, and that its
// lock is free when it has ended.
func TestStuckScriptIsTold(t *testing.T) {
	t.Parallel()
	store := sqlite(t)
	began := time.Now()
	p, _ := script(t, "dash", store, "--stall-after 1500ms", "for i in 1 2 3 4; do sleep 0.5; holdfast heartbeat; done; sleep 10; :")
	p.want(143)
	if took := time.Since(began); took < 3500*time.Millisecond {
		t.Errorf("it was notified after %s, though it had reported for two seconds", took)
	}
	wantRun(t, 0, store, "run", "-w", "5", "job", "--", "true")
}

// TestKeeperIsKilled: check fails at once, because nothing renews the lease. The store still has
// the lease, so that extend succeeds, and the lease expires with its TTL.
func TestKeeperIsKilled(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		p, dir := script(t, "dash", store, "--ttl 3s",
			"until test -e killed; do sleep 0.01; done; holdfast check; echo check $?; holdfast heartbeat; echo heartbeat $?; "+
				"holdfast extend 3; echo extend $?; until test -e late; do sleep 0.01; done; holdfast check; echo check $?")
		signalTo(t, keeperOf(t, dir), syscall.SIGKILL)
		touch(t, filepath.Join(dir, "killed"))
		eventually(t, "it is extended", func() bool { return strings.Contains(read(t, p.stdout), "extend") })
		wantRun(t, 75, store, "run", "-n", "job", "--", "true")
		wantRun(t, 0, store, "run", "-w", "10", "job", "--", "true")
		touch(t, filepath.Join(dir, "late"))
		p.want(0)
		for _, want := range []string{"check 79\nheartbeat 69", "extend 0", "\ncheck 79"} {
			if !strings.Contains(read(t, p.stdout), want+"\n") {
				t.Errorf("no %q in %q", want, read(t, p.stdout))
			}
		}
		p.awaitStderr("its keeper is gone: nothing renews the lease")
	})
}

// TestCheckOfALeaseThatIsNotRenewed checks that check fails for a lease that is not renewed and has
// less than a third of its TTL left, both with a keeper and without one.
func TestCheckOfALeaseThatIsNotRenewed(t *testing.T) {
	const until = "holdfast check || exit 3; touch kept; while holdfast check; do sleep 0.05; done; "
	t.Run("without a keeper", func(t *testing.T) {
		t.Parallel()
		p := startProgram(t, sqlite(t), "dash", func(*process) []string {
			return []string{"-c", `eval "$(holdfast acquire --ttl 9s job || echo exit $?)"; cd "$0"; ` + until + "holdfast extend 9 && holdfast check && holdfast release", t.TempDir()}
		})
		p.want(0)
		p.awaitStderr("less than a third of its TTL, and is not renewed")
	})
	t.Run("with a keeper", func(t *testing.T) {
		t.Parallel()
		server, dir := testsvc.Redis(t), t.TempDir()
		p := startProgram(t, server.URL, "dash", func(*process) []string {
			return []string{"-c", `trap "" TERM; eval "$(holdfast acquire --ttl 9s --pid $$ job || echo exit $?)"; cd "$0"; ` + until + "exit 4", dir}
		})
		awaitFile(t, filepath.Join(dir, "kept"))
		server.Stop()
		p.want(4)
		p.awaitStderr("less than a third of its TTL, and is not renewed")
	})
}

// TestReleaseWithoutItsKeeper checks that a lease can be released after its keeper was killed.
func TestReleaseWithoutItsKeeper(t *testing.T) {
	t.Parallel()
	store := sqlite(t)
	p, dir := script(t, "dash", store, "", "until test -e killed; do sleep 0.01; done; holdfast release")
	signalTo(t, keeperOf(t, dir), syscall.SIGKILL)
	touch(t, filepath.Join(dir, "killed"))
	p.want(0)
	wantRun(t, 0, store, "run", "-n", "job", "--", "true")
}

// TestKeeperIsStopped: the lease expires with its TTL. Check does not hang meanwhile, and when the
// keeper is continued, it sends the script TERM.
func TestKeeperIsStopped(t *testing.T) {
	t.Parallel()
	store := sqlite(t)
	p, dir := script(t, "dash", store, "--ttl 6s", "until test -e stopped; do sleep 0.01; done; "+waits("trap 'exit 7' TERM; holdfast check; echo $? >a; mv a first; until test -e free; do sleep 0.01; done; holdfast check; echo $? >b; mv b second"))
	keeper := keeperOf(t, dir)
	signalTo(t, keeper, syscall.SIGSTOP)
	defer func() { _ = syscall.Kill(keeper, syscall.SIGCONT) }()
	eventually(t, "the keeper is stopped", func() bool { return strings.HasPrefix(inState(t, keeper), "T") })
	touch(t, filepath.Join(dir, "stopped"))
	wantRun(t, 0, store, "run", "-w", "20", "job", "--", "true")
	touch(t, filepath.Join(dir, "free"))
	for _, file := range []string{"first", "second"} {
		awaitFile(t, filepath.Join(dir, file))
	}
	if first, second := read(t, filepath.Join(dir, "first")), read(t, filepath.Join(dir, "second")); first == "0\n" || second != "79\n" {
		t.Errorf("check answers %q while the keeper is stopped, and %q when the lock is free; want 69, and 79", first, second)
	}
	signalTo(t, keeper, syscall.SIGCONT)
	p.want(7)
}

// TestScriptEndsWhileItWaits checks that acquire stops waiting when its script has ended.
func TestScriptEndsWhileItWaits(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	h := hold(t, server.URL, "job")
	p := startProgram(t, server.URL, "dash", func(*process) []string { return []string{"-c", fmt.Sprintf(acquires, "job")} })
	eventually(t, "it waits", func() bool { return show(t, server.URL, "job").QueueLength == 1 })
	p.signal(syscall.SIGKILL)
	eventually(t, "it waits no more", func() bool { return show(t, server.URL, "job").QueueLength == 0 })
	h.finish()
	h.want(0)
	wantRun(t, 0, server.URL, "run", "-n", "job", "--", "true")
}

// TestKeeperOutlivesSignals checks that the keeper ignores signals that are sent to the script's
// process group, or to all processes at shutdown: the script keeps its lock while it cleans up.
func TestKeeperOutlivesSignals(t *testing.T) {
	t.Parallel()
	store := sqlite(t)
	p, dir := script(t, "dash", store, "", waits(":"))
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		signalTo(t, keeperOf(t, dir), sig)
	}
	wantRun(t, 75, store, "run", "-n", "job", "--", "true")
	touch(t, filepath.Join(dir, "end"))
	p.want(0)
	wantRun(t, 0, store, "run", "-w", "10", "job", "--", "true")
}

// TestKeeperFindsRelativeFiles checks that a keeper opens a store whose URL names a file relative to
// the directory of its script.
func TestKeeperFindsRelativeFiles(t *testing.T) {
	t.Parallel()
	pair := newKeyPair(t, "localhost")
	store := serve(t, sqlite(t), "--tls-cert", pair.cert, "--tls-key", pair.key).urls[0] + "?ca_file=" + filepath.Base(pair.cert)
	p := startProgram(t, store, "dash", func(*process) []string {
		return []string{"-c", `cd "$0"; ` + fmt.Sprintf(acquires, "job") + "holdfast release && holdfast once begin --pid $$ work && holdfast once fail work", filepath.Dir(pair.cert)}
	})
	p.want(0)
}
