//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestExtensionReachesTheWarden checks that a command may use an extension that it requested
// itself, even if its holdfast is stopped right after the extension. The warden kills the command
// before the new expiry.
func TestExtensionReachesTheWarden(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		dir := t.TempDir()
		extended, pid, marks := filepath.Join(dir, "extended"), filepath.Join(dir, "pid"), filepath.Join(dir, "marks")
		const ttl, longer = 2 * time.Second, 4 * time.Second
		p := start(t, store, "run", "--no-keep-alive", "--ttl", ttl.String(), "job", "--", "sh", "-c", fmt.Sprintf(
			"until test -s %[1]s; do sleep 0.01; done; holdfast extend %[2]s && kill -STOP $(cat %[1]s) && touch %[3]s && exec workload -deaf %[4]s",
			pid, longer, extended, marks))
		began := time.Now()
		if err := os.WriteFile(pid, fmt.Append(nil, p.cmd.Process.Pid), 0o600); err != nil {
			t.Fatal(err)
		}
		pids := awaitMarks(t, marks, 1)
		eventually(t, "the command is gone", func() bool { return gone(t, pids) })
		info, err := os.Stat(extended)
		if err != nil {
			t.Fatal(err)
		}
		if end := last(t, marks).at; end.Before(began.Add(ttl)) || !end.Before(info.ModTime().Add(longer)) {
			t.Errorf("the command ended %s after its start, and %s after the extension to %s", end.Sub(began), end.Sub(info.ModTime()), longer)
		}
		p.signal(syscall.SIGCONT)
		p.want(79)
	})
}

// TestRequestsHoldNothingUp checks that requests to a store that does not answer delay neither the
// loss of the lock nor the end of the job, even if there are more requests than holdfast handles at
// a time.
func TestRequestsHoldNothingUp(t *testing.T) {
	t.Parallel()
	server, file := testsvc.Redis(t), filepath.Join(t.TempDir(), "marks")
	const ttl = 3 * time.Second
	p := start(t, server.URL, "run", "--ttl", ttl.String(), "job", "--", "sh", "-c",
		"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do while :; do holdfast extend 3; done >/dev/null 2>&1 & done; workload -deaf "+file)
	pids := awaitMarks(t, file, 1)
	server.Stop()
	expiry := time.Now().Add(ttl) // at the latest: the store answers no later request
	eventually(t, "the command is gone", func() bool { return gone(t, pids) })
	p.want(79)
	if end := last(t, file).at; !end.Before(expiry) {
		t.Errorf("the command outlived its lock by %s", end.Sub(expiry))
	}
	if late := p.ended.Sub(expiry); late > 300*time.Millisecond {
		t.Errorf("holdfast ended %s after the lock", late)
	}
}
