//go:build unix

// These tests run the real binary as its users do, with real processes and
// real stores, and look at exit statuses and at what the commands leave in
// files.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes two programs available on the PATH: holdfast, as go build makes it, and workload,
// which is this test binary.
//
// The test binary has to contain the program as well, although no test runs that copy: go test
// reuses a cached result if the test binary has not changed, and the linker drops code that nothing
// refers to.
func TestMain(m *testing.M) {
	syscall.Umask(0o022) // a store refuses a directory that every user may write
	testscript.Main(&withBinary{m}, map[string]func(){
		"workload":      func() { os.Exit(workload(os.Args[1:])) },
		"holdfast-copy": main,
	})
}

// quickExit keeps a program that was built with -race from waiting for a
// second before it ends, in case of a late report.
const quickExit = "atexit_sleep_ms=0"

// systemRoot is the directory that the built binary takes for /, where it looks
// for files of the system.
var systemRoot string

// withBinary runs the tests with the built binary on the PATH.
type withBinary struct{ tests testscript.TestingM }

func (w *withBinary) Run() int {
	dir, err := os.MkdirTemp("/tmp", "holdfast-test") // the paths of sockets must be short
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// The binary reads system files below systemRoot, so that no test reads those of the machine.
	systemRoot = filepath.Join(dir, "root")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(systemRoot, 0o755)); err != nil { // some tests run as other users
		return failed(err)
	}
	args := []string{"build", "-ldflags", "-X main.root=" + systemRoot, "-o", filepath.Join(dir, "holdfast")}
	if raceEnabled() {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return failed(fmt.Errorf("go build: %w\n%s", err, out))
	}
	for _, err := range []error{
		// More tests run at once than there are processors, because they wait for real TTLs nearly
		// all of the time. With more than four, leases would miss renewals on a busy machine.
		flag.Set("test.parallel", "4"),
		os.Unsetenv("HOLDFAST_STORE"), // only the tests choose the store
		os.Unsetenv("HOLDFAST_STORE_FILE"),
		os.Unsetenv("HOLDFAST_LOCK_STORE"), // the tests may run under a lock
		os.Unsetenv("HOLDFAST_HELD"),
		os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config")),
		os.Setenv("GORACE", quickExit),
		os.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "run")),
		os.Mkdir(filepath.Join(dir, "run"), 0o700),
		os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")),
	} {
		if err != nil {
			return failed(err)
		}
	}
	stopIgnoring()
	return w.tests.Run()
}

// stopIgnoring makes the programs that the tests start begin with the default actions of signals.
// If the tests run in the background, signals may be ignored, which children inherit.
func stopIgnoring() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // a signal that is caught is not ignored in a child
		}
	}
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// raceEnabled reports whether the tests were built with -race.
func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// TestScripts runs testdata/script/*.txt. Each script has a directory and a
// default store of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", quickExit)
			env.Setenv("XDG_RUNTIME_DIR", os.Getenv("XDG_RUNTIME_DIR"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("ROOT", systemRoot)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":   status,
			"schedule": schedule,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// status implements "status N COMMAND [ARG…]" in scripts: the command must exit with status N. Then
// stdout and stderr check its output, as after exec.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND [ARG…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = fmt.Sprint(exit.ExitCode())
	}
	if got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}
