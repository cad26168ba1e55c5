//go:build unix

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestBreak breaks the lock of a command that does not end. In the same step the first waiter of
// the queue must get the lock, and the command must be stopped.
func TestBreak(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		const ttl, killAfter, slack = 3 * time.Second, 100 * time.Millisecond, 900 * time.Millisecond
		file := filepath.Join(t.TempDir(), "marks")
		stuck := start(t, store, "run", "--ttl", ttl.String(), "--kill-after", killAfter.String(), "--reason", "stuck", "job", "--", "workload", "-deaf", "-depth", "1", file)
		pids := awaitMarks(t, file, 2)
		waiter := enqueue(t, 1, store, "job", "job", "--", "workload", "-for", "3s", file+"2")
		second := enqueue(t, 2, store, "job", "job", "--", "true")
		before := show(t, store, "job")

		began := time.Now()
		status, stdout, stderr := run(t, store, "break", "job", "--reason", "the host is gone", "--json")
		after := show(t, store, "job")
		var answer struct {
			Name, Reason string
			Broken       []struct {
				PID          int
				Reason       string
				FencingToken uint64 `json:"fencing_token"`
			}
		}
		if err := json.Unmarshal([]byte(stdout), &answer); err != nil || status != 0 {
			t.Fatalf("break: status %d, %v\n%s%s", status, err, stdout, stderr)
		}
		if b := answer.Broken; answer.Name != "job" || answer.Reason != "the host is gone" || len(b) != 1 ||
			b[0].PID != stuck.cmd.Process.Pid || b[0].Reason != "stuck" || b[0].FencingToken != before.LastToken {
			t.Errorf("the answer is %+v, the lock was %+v", answer, before)
		}
		if !strings.Contains(stderr, `holdfast: broke "job": the host is gone`) {
			t.Errorf("the message is %q", stderr)
		}
		if len(after.Holders) != 1 || after.Holders[0].PID != waiter.cmd.Process.Pid || after.QueueLength != 1 || after.LastToken <= before.LastToken {
			t.Errorf("after it the lock is %+v", after)
		}

		stuck.want(79)
		wantGone(t, pids)
		if took := last(t, file).at.Sub(began); took > ttl/3+killAfter+slack {
			t.Errorf("the command ran on for %s", took)
		}
		waiter.want(0)
		second.want(0)
		wantRun(t, 1, store, "break", "job", "--reason", "again")
	})
}

// TestBreakForeign checks that break does not delete a lock of another program.
func TestBreakForeign(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	redis(t, server, "SET", "job", "mine", "PX", "60000")
	stderr := wantRun(t, 78, server.URL, "break", "job", "--reason", "why")
	if !strings.Contains(stderr, "not holdfast") || !strings.Contains(stderr, "delete its key") {
		t.Errorf("the message is %q", stderr)
	}
	if got := redis(t, server, "GET", "job"); got != "mine" {
		t.Errorf("the key is %q", got)
	}
	redis(t, server, "RPUSH", "list", "a")
	if stderr := wantRun(t, 78, server.URL, "break", "list", "--reason", "why"); strings.Contains(stderr, "delete its key") {
		t.Errorf("of a key that is not a lock: %q", stderr)
	}
}
