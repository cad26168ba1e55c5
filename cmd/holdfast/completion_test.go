package main

import (
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestCompletionDoesNotWait checks that completion takes 300 ms at most, even if the store accepts
// the connection and never answers. The start of the program is measured in the same run and added.
func TestCompletionDoesNotWait(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	complete := func(args ...string) (time.Duration, string) {
		began := time.Now()
		out, err := exec.Command("holdfast", append([]string{"__complete"}, args...)...).Output()
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return time.Since(began), string(out)
	}
	start, _ := complete("run", "--on-lost", "")
	took, out := complete("--store", "redis://"+silent.Addr().String(), "show", "")
	if strings.TrimSpace(out) != ":4" {
		t.Errorf("a silent store completes to %q", out)
	}
	if limit := 300*time.Millisecond + 10*start + 200*time.Millisecond; took < 300*time.Millisecond || took > limit {
		t.Errorf("it took %s, want 300ms to %s", took, limit)
	}
}
