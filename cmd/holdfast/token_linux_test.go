package main

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestTokenRace has many processes redeem one token. One of them gets the payload, and the others
// an error with the reason. A process for which the store is too busy ends with status 69, and the
// test starts it again.
func TestTokenRace(t *testing.T) {
	const processes, payload = 20, "user 42\x00 and so on\n"
	oneByOne(t, func(t *testing.T, store string) {
		status, secret, stderr := feed(store, payload, "token", "issue", "-")
		if status != 0 {
			t.Fatalf("issue: status %d: %s", status, stderr)
		}
		type answer struct {
			status         int
			stdout, stderr string
		}
		answers := make([]answer, processes)
		var all sync.WaitGroup
		var again atomic.Int32
		for i := range answers {
			all.Go(func() {
				a := &answers[i]
				for a.status = 69; a.status == 69; again.Add(1) {
					a.status, a.stdout, a.stderr = feed(store, secret, "token", "redeem", "-")
				}
			})
		}
		all.Wait()
		payloads, refused := 0, 0
		for _, a := range answers {
			switch {
			case a.status == 0 && a.stdout == payload:
				payloads++
			case a.status == 1 && a.stdout == "" && strings.Contains(a.stderr, "token was redeemed already"):
				refused++
			default:
				t.Errorf("%+v", a)
			}
		}
		t.Logf("%d processes: %d got the payload, %d were refused because it is redeemed; %d times the store was too busy",
			processes, payloads, refused, again.Load()-processes)
		if payloads != 1 || refused != processes-1 {
			t.Errorf("%d payloads, %d refusals", payloads, refused)
		}
	})
}

// TestTokenIsNotTold checks that redeem and issue end with status 74 if they cannot write the
// payload or the secret.
func TestTokenIsNotTold(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	store := sqlite(t)
	_, secret, _ := feed(store, "x", "token", "issue", "-")
	cmd := exec.Command("holdfast", "--store", store, "token", "redeem", "-")
	cmd.Stdin, cmd.Stdout = strings.NewReader(secret), full
	_ = cmd.Run() // its status is read from ProcessState
	if status := cmd.ProcessState.ExitCode(); status != 74 {
		t.Errorf("redeem: status %d, want 74", status)
	}
	cmd = exec.Command("holdfast", "--store", store, "token", "issue")
	cmd.Stdout = full
	_ = cmd.Run()
	if status := cmd.ProcessState.ExitCode(); status != 74 {
		t.Errorf("issue: status %d, want 74", status)
	}
}
