//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
)

// locks returns what ls prints.
func locks(t *testing.T, store string) string {
	t.Helper()
	status, stdout, stderr := run(t, store, "ls")
	if status != 0 {
		t.Fatalf("ls: status %d: %s", status, stderr)
	}
	return stdout
}

// TestBench checks that bench leaves other locks alone and none of its own behind, whether it
// completes or a signal ends it.
func TestBench(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		other := hold(t, store, "other")
		alone := func(when string) {
			t.Helper()
			if got := locks(t, store); strings.Count(got, "\n") != 2 || !strings.Contains(got, "\nother\t") {
				t.Errorf("%s the store has\n%s", when, got)
			}
		}
		status, stdout, stderr := run(t, store, "bench", "--for", "4", "--json")
		var answer struct {
			Store      string
			Processors int
			HandOver   struct{ Count int } `json:"hand_over"`
			Throughput []struct {
				Workers int
				PerS    int `json:"pairs_per_s"`
				Pair    struct {
					Count int
				} `json:"acquire_release"`
			}
		}
		if err := json.Unmarshal([]byte(stdout), &answer); err != nil || status != 0 || stderr != "" {
			t.Fatalf("status %d, %v\n%s%s", status, err, stdout, stderr)
		}
		if answer.Store == "" || answer.Processors == 0 || answer.HandOver.Count == 0 || len(answer.Throughput) != 3 ||
			answer.Throughput[2].Workers != 256 || answer.Throughput[2].PerS == 0 || answer.Throughput[0].Pair.Count == 0 {
			t.Errorf("the answer is %+v", answer)
		}
		alone("after it")
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
			p := start(t, store, "bench", "--for", "30")
			eventually(t, "bench has locks", func() bool { return strings.Contains(locks(t, store), "holdfast-bench-") })
			p.signal(s)
			p.want(128 + int(s))
			alone("after " + s.String())
		}
		p := start(t, store, "bench", "--for", "30")
		eventually(t, "bench has locks", func() bool { return strings.Contains(locks(t, store), "holdfast-bench-") })
		p.signal(syscall.SIGKILL)
		p.wait()
		eventually(t, "what was left has ended", func() bool { return !strings.Contains(locks(t, store), "holdfast-bench-") })
		alone("after KILL")
		other.finish()
	})
}
