//go:build unix

package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// workload is the program that runs under the lock. It appends a mark to a file every few
// milliseconds, so that the file shows when the program ran, whatever happened to it.
//
//	workload [-for DURATION] [-depth N] [-deaf] [-root] [-alive DURATION] FILE
//
// With -depth it first starts a child with a depth of one less. With -deaf it ignores the signals
// that ask a process to end. With -root it becomes root's, as sudo does, if its file is root's and
// setuid. With -alive it sends its service manager a heartbeat with each mark during that time.
func workload(args []string) int {
	fs := flag.NewFlagSet("workload", flag.ContinueOnError)
	length := fs.Duration("for", time.Minute, "")
	depth := fs.Int("depth", 0, "")
	deaf := fs.Bool("deaf", false, "")
	root := fs.Bool("root", false, "")
	alive := fs.Duration("alive", 0, "")
	if err := fs.Parse(args); err != nil || fs.NArg() != 1 {
		return 2
	}
	if *root && syscall.Setuid(0) != nil {
		return 6
	}
	if *deaf {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	}
	if *depth > 0 {
		child := exec.Command("workload", "-for", length.String(), "-depth", fmt.Sprint(*depth-1), fmt.Sprintf("-deaf=%t", *deaf), fs.Arg(0))
		if err := child.Start(); err != nil {
			return 3
		}
	}
	file, err := os.OpenFile(fs.Arg(0), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 4
	}
	for end := time.Now().Add(*length); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if *alive > 0 && time.Until(end) > *length-*alive && tellManager("READY=1\nSTATUS=at work\nWATCHDOG=1") != nil {
			return 7
		}
		if _, err := fmt.Fprintf(file, "%d %d %s\n", time.Now().UnixNano(), os.Getpid(), os.Getenv("HOLDFAST_FENCING_TOKEN")); err != nil {
			return 5
		}
	}
	return 0
}

// tellManager sends a message as sd_notify(3) does.
func tellManager(message string) error {
	conn, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte(message))
	return err
}

// A mark is one line of a workload's file.
type mark struct {
	at    time.Time
	pid   int
	token uint64
}

// readMarks returns the marks of a file, and none if there is no file.
func readMarks(t *testing.T, file string) []mark {
	t.Helper()
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var marks []mark
	for line := range strings.Lines(string(data)) {
		var ns int64
		var m mark
		if _, err := fmt.Sscan(line, &ns, &m.pid, &m.token); err != nil {
			t.Fatalf("%s: %q: %v", file, line, err)
		}
		m.at = time.Unix(0, ns)
		marks = append(marks, m)
	}
	return marks
}

// awaitMarks waits until n processes have left marks, and returns their IDs.
func awaitMarks(t *testing.T, file string, n int) []int {
	t.Helper()
	var pids []int
	eventually(t, fmt.Sprintf("%d processes mark %s", n, file), func() bool {
		pids = nil
		seen := map[int]bool{}
		for _, m := range readMarks(t, file) {
			if !seen[m.pid] {
				seen[m.pid] = true
				pids = append(pids, m.pid)
			}
		}
		return len(pids) >= n
	})
	return pids
}

// last returns the latest mark.
func last(t *testing.T, file string) mark {
	t.Helper()
	marks := readMarks(t, file)
	if len(marks) == 0 {
		t.Fatalf("%s has no marks", file)
	}
	latest := marks[0]
	for _, m := range marks {
		if m.at.After(latest.at) {
			latest = m
		}
	}
	return latest
}

// alive reports whether a process runs. A process that has ended but was not reaped does not run.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	state := inState(t, pid)
	return state != "" && !strings.HasPrefix(state, "Z")
}

// inState returns the state of a process, as in ps(1), or nothing if there is no such process.
func inState(t *testing.T, pid int) string {
	t.Helper()
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// wantGone fails the test if a process of pids still runs.
func wantGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if alive(t, pid) {
			t.Errorf("process %d outlives its lock", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// eventually waits until condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("after %s, not yet: %s", patience, what)
		}
	}
}

// wantAfter fails the test unless the first mark of a file was made after m, under a greater token.
func wantAfter(t *testing.T, file string, m mark) {
	t.Helper()
	marks := readMarks(t, file)
	if len(marks) == 0 {
		t.Errorf("%s has no marks", file)
		return
	}
	if first := marks[0]; !first.at.After(m.at) {
		t.Errorf("two held the lock at once: process %d for %s longer than process %d waited", m.pid, m.at.Sub(first.at), first.pid)
	} else if first.token <= m.token {
		t.Errorf("token %d follows token %d", first.token, m.token)
	}
}

// awaitFile waits until a file exists.
func awaitFile(t *testing.T, file string) {
	t.Helper()
	eventually(t, file+" exists", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
}
