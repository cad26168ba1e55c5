//go:build unix

package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// Every crontab and every script pays for what a program does before its work. These tests check
// what can be counted; TestRunCostsLittle of systest measures the time.

// TestProgramHasNoTemplates checks that the program executes no template. Templates look for
// methods by their names, so that the linker cannot drop methods that nothing calls: the program
// becomes almost twice as large.
func TestProgramHasNoTemplates(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(program, []byte("github.com/spf13/cobra.(*Command).ExecuteC")) {
		t.Fatal("the names of functions are not to be found in a program any more")
	}
	if bytes.Contains(program, []byte("text/template.(*Template).Execute")) {
		t.Error("a template is executed somewhere: see rootCommand")
	}
}

// TestStrippedProgramIsSmall: the program that people download fits in 32 MB.
func TestStrippedProgramIsSmall(t *testing.T) {
	t.Parallel()
	const most = 32e6
	path := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() >= most || info.Size() < 1e6 {
		t.Errorf("it has %d bytes, want less than %.0f", info.Size(), most)
	}
}

// TestVersionOfTheProgram checks that holdfast version prints the commit that the go command has
// recorded in the program.
func TestVersionOfTheProgram(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Commit   string
		Modified bool
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			want.Commit = s.Value
		case "vcs.modified":
			want.Modified = s.Value == "true"
		}
	}
	got := want
	got.Commit, got.Modified = "", false
	status, stdout, _ := run(t, "memory:", "version", "--json")
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || status != 0 || got != want {
		t.Errorf("status %d, %v: %s, want %+v", status, err, stdout, want)
	}
}

// TestInitIsSmall checks that packages allocate little before main, because every command pays for
// it.
func TestInitIsSmall(t *testing.T) {
	t.Parallel()
	most, mostOurs := 148<<10, 13<<10 // bytes; measured were 136 KiB, a quarter of them for pgx and its imports, and 12.2 KiB
	if raceEnabled() {
		mostOurs += 3 << 10 // 9.2 to 10.9 KiB were measured
	}
	cmd := exec.Command("holdfast", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	all, ours := 0, 0
	for line := range strings.Lines(trace.String()) {
		// init PACKAGE @2.1 ms, 0.1 ms clock, 312 bytes, 7 allocs
		f := strings.Fields(line)
		if len(f) < 9 || f[0] != "init" {
			continue
		}
		bytes, err := strconv.Atoi(f[7])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all += bytes
		if strings.HasPrefix(f[1], "github.com/holdfast-locks/") {
			ours += bytes
		}
	}
	t.Logf("%d bytes before main, %d of them by packages of holdfast", all, ours)
	if ours == 0 || ours > mostOurs || all > most {
		t.Errorf("before main %d bytes are allocated, want at most %d; by packages of holdfast %d, want 1 to %d:\n%s",
			all, most, ours, mostOurs, trace.String())
	}
}

// TestWardenStartsFirst checks that the largest packages that a warden does not need are not
// initialised, although a warden is the same program.
func TestWardenStartsFirst(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("holdfast", "__warden", "no", "pipes")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 64 || !bytes.Contains(trace, []byte("init os @")) {
		t.Fatalf("%v: %s", err, trace)
	}
	for _, pkg := range []string{"net", "net/http", "crypto/tls", "modernc.org/sqlite", "github.com/redis/rueidis"} {
		if bytes.Contains(trace, []byte("init "+pkg+" @")) {
			t.Errorf("package %s is initialised", pkg)
		}
	}
}

// TestRunIsTwoRequests checks that a short run is one connection, one request for the lock and one
// to release it. A run that takes longer on a busy machine also listens for a loss, and so the test
// tries again.
func TestRunIsTwoRequests(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	wantRun(t, 0, server.URL, "run", "first", "--", "true") // this sends the scripts in full
	var stats string
	for range 10 {
		redis(t, server, "CONFIG", "RESETSTAT")
		wantRun(t, 0, server.URL, "run", "job", "--", "true")
		stats = redis(t, server, "INFO", "everything")
		if isTwoRequests(stats) {
			return
		}
	}
	t.Errorf("more than one connection and two requests, or fewer:\n%s", stats)
}

// isTwoRequests reports whether the server has had one client, which sent two requests.
func isTwoRequests(stats string) bool {
	for _, want := range []string{
		"total_connections_received:2\r\n", // one is for INFO
		"cmdstat_hello:calls=1,",
		"cmdstat_evalsha:calls=2,",
	} {
		if !strings.Contains(stats, want) {
			return false
		}
	}
	for _, sent := range []string{"cmdstat_eval:", "cmdstat_ping:", "cmdstat_subscribe:", "cmdstat_client", "cmdstat_script"} {
		if strings.Contains(stats, sent) {
			return false
		}
	}
	return true
}
