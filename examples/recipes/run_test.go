//go:build unix

package recipes

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
)

// crontab returns the commands of the crontab as cron runs them: cron cuts a command at the first
// %, and \% stands for a %.
func crontab(t *testing.T) (commands []string) {
	t.Helper()
	entry := regexp.MustCompile(`^(\S+ +){5}app +(.*)$`)
	for line := range strings.Lines(read(t, "cron/holdfast")) {
		m := entry.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || line[0] == '#' {
			continue
		}
		command, _, _ := strings.Cut(strings.ReplaceAll(m[2], `\%`, "\x00"), "%")
		commands = append(commands, strings.ReplaceAll(command, "\x00", "%"))
	}
	if len(commands) != 2 {
		t.Fatalf("the crontab has the commands %q", commands)
	}
	return commands
}

// TestCron checks that three hosts make the report once, on another host if it fails on the first,
// and that the other job runs on one of the hosts.
func TestCron(t *testing.T) {
	f := newFleet(t)
	commands := crontab(t)
	failed := filepath.Join(t.TempDir(), "failed")
	f.job(t, "report", "[ -e "+failed+" ] || { touch "+failed+"; exit 1; }")
	if got, want := f.onHosts(t, 3, nil, "sh", "-c", commands[0]), map[int]int{0: 2, 1: 1}; !maps.Equal(got, want) {
		t.Errorf("the report: statuses %v, want %v", got, want)
	}
	if got := f.lines(t); got != "begin begin end" {
		t.Errorf("the report: %s, want one that fails and one that does not", got)
	}
	f.job(t, "sync-orders", "")
	if got := f.onHosts(t, 3, nil, "sh", "-c", commands[1]); got[0] != 3 {
		t.Errorf("sync: statuses %v, want 0", got)
	}
	if got := f.lines(t); got != "begin begin end begin end" {
		t.Errorf("%s, want one more job", got)
	}
}

// TestSelfLocking checks that one of two processes that start the script at once does the work,
// with its arguments.
func TestSelfLocking(t *testing.T) {
	f := newFleet(t)
	f.job(t, "hold-on", "sleep 1")
	f.install(t, "nightly.sh", replaced(t, read(t, "scripts/nightly.sh"), "\necho ", "\nhold-on\necho "))
	for _, args := range [][]string{{"nightly.sh", "a b"}, {"sh", filepath.Join(f.bin, "nightly.sh"), "a b"}} {
		args[0] = replaced(t, args[0], args[0], filepath.Join(map[bool]string{true: "/bin", false: f.bin}[args[0] == "sh"], args[0]))
		if got, want := f.onHosts(t, 2, nil, args...), map[int]int{0: 1, 75: 1}; !maps.Equal(got, want) {
			t.Errorf("%v: statuses %v, want %v", args, got, want)
		}
	}
	if got := f.lines(t); got != "begin end begin end" {
		t.Errorf("%s, want two, one after the other", got)
	}
	out, err := f.command(t, nil, filepath.Join(f.bin, "nightly.sh"), "a b").CombinedOutput()
	if err != nil || !regexp.MustCompile(`^token \d{16}: a b\n$`).Match(out) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestFreeze checks that deploys are refused during the freeze, with its reason, and run after it,
// however the freeze is ended.
func TestFreeze(t *testing.T) {
	f := newFleet(t)
	const reason = "no releases before Monday"
	steps := strings.Split(strings.TrimSpace(read(t, "scripts/freeze.sh")), "\n\n")
	freeze, try, end := steps[0], replaced(t, steps[1], "./deploy.sh", "true"), steps[2]
	home := []string{"HOME=" + t.TempDir()} // of the user who starts and ends the freeze
	step := func(command string, env []string, want int, says string) {
		t.Helper()
		out, err := f.command(t, env, "sh", "-c", command).CombinedOutput()
		if status(err) != want || !strings.Contains(string(out), says) {
			t.Errorf("%s: status %d, want %d with %q\n%s", command, status(err), want, says, out)
		}
	}
	for _, who := range [][]string{home, nil} { // the second is another user, who breaks the lock
		step(try, nil, 0, "")
		step(freeze, home, 0, "until")
		step(try, nil, 75, reason)
		step(end, who, 0, "")
	}
	step(try, nil, 0, "")
}

// TestCI checks that two deploys of the workflow at once run one after the other.
func TestCI(t *testing.T) {
	f := newFleet(t)
	w := workflow(t)
	if len(w) != 1 {
		t.Fatalf("the workflow runs %q", w)
	}
	f.job(t, "deploy", "sleep .2")
	env := []string{"GITHUB_WORKFLOW=deploy", "GITHUB_RUN_ID=42"}
	if got := f.onHosts(t, 2, env, "bash", "-e", "-c", replaced(t, w[0], "./deploy.sh", "deploy")); got[0] != 2 {
		t.Errorf("statuses %v, want 0", got)
	}
	if got := f.lines(t); got != "begin end begin end" {
		t.Errorf("%s, want one after the other", got)
	}
}

// TestSidecar checks that one of two pods has the token. If its sidecar is killed, the file is too
// old before the other pod gets a greater token. A sidecar that starts again removes the old token.
func TestSidecar(t *testing.T) {
	f := newFleet(t)
	scripts := sidecarScripts(t)
	pod := func() (dir string, start func() (stop func(kill bool))) {
		dir = t.TempDir()
		for name, text := range scripts {
			text = strings.ReplaceAll(strings.ReplaceAll(text, "/run/lead", dir), "/scripts", dir)
			f.install(t, filepath.Join(dir, name), strings.ReplaceAll(text, "--ttl 15s", "--ttl 4s"))
		}
		return dir, func() func(bool) {
			cmd := f.command(t, nil, "sh", filepath.Join(dir, "stand.sh"))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			return func(kill bool) {
				if kill {
					_ = cmd.Process.Kill()
				} else {
					_ = cmd.Process.Signal(syscall.SIGTERM)
				}
				_ = cmd.Wait()
			}
		}
	}
	one, startOne := pod()
	two, startTwo := pod()
	kill := startOne()
	first := token(t, one)
	stopTwo := startTwo()
	kill(true)
	last := changed(t, one)
	second := token(t, two)
	if begin := changed(t, two); second <= first || !begin.After(last.Add(time.Second)) {
		t.Errorf("token %d after %d; the first was last seen at %s, the second at %s", second, first, last, begin)
	}
	stopOne := startOne() // it waits
	drivertest.Eventually(t, "the old token is gone", func() bool { _, err := os.Stat(filepath.Join(one, "token")); return os.IsNotExist(err) })
	stopTwo(false)
	if _, err := os.Stat(filepath.Join(two, "token")); err == nil {
		t.Error("a pod that has ended leaves its token behind")
	}
	if third := token(t, one); third <= second {
		t.Errorf("token %d after %d", third, second)
	}
	stopOne(false)
}

// token waits for the token of a pod and returns it.
func token(t *testing.T, dir string) (token uint64) {
	t.Helper()
	drivertest.Eventually(t, "a token", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "token"))
		if err == nil {
			token, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		}
		return err == nil
	})
	return token
}

// changed returns when the token file of a pod was last touched.
func changed(t *testing.T, dir string) time.Time {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}
