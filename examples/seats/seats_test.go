//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/quorumlock"
	"github.com/holdfast-locks/holdfast/stores"
)

// build returns the path of the program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "seats")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// sell runs the program, which must end with status, and returns its output.
func sell(t *testing.T, program string, status int, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Fatalf("seats %s: status %d, want %d\n%s%s", strings.Join(args, " "), got, status, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// summaryOf returns the summary in the last line of the output.
func summaryOf(t *testing.T, stdout string) summary {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var s summary
	d := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("the last line is not a summary: %v\n%s", err, stdout)
	}
	return s
}

// wantSoldOnce fails the test unless every seat was sold to one customer, and all other charges
// were refunded.
func wantSoldOnce(t *testing.T, stdout string, rounds int) {
	t.Helper()
	s := summaryOf(t, stdout)
	if s.Rounds != rounds || s.Sold != rounds || s.DoubleSold != 0 || s.Refused < rounds || s.Refunded != s.Refused || s.Unsettled != 0 {
		t.Errorf("with fencing: %+v\n%s", s, stdout)
	}
	for _, line := range []string{"SIGSTOP", "SIGCONT", "IS REFUSED", "refunds"} {
		if n := strings.Count(stdout, line); n < rounds {
			t.Errorf("%d lines with %q in %d rounds", n, line, rounds)
		}
	}
}

// wantSoldTwice fails the test unless a seat was sold twice with the lock alone.
func wantSoldTwice(t *testing.T, stdout string) {
	t.Helper()
	s := summaryOf(t, stdout)
	if s.DoubleSold < 1 || s.Refused != 0 || s.Refunded != 0 {
		t.Errorf("without fencing: %+v\n%s", s, stdout)
	}
	if n := strings.Count(stdout, "IS SOLD TWICE"); n != s.DoubleSold {
		t.Errorf("%d seats sold twice, %d by the timeline\n%s", s.DoubleSold, n, stdout)
	}
}

// wantNothingLeft fails the test if the program left tables in the server.
func wantNothingLeft(t *testing.T, dsn string) {
	t.Helper()
	db, err := database{PostgreSQL: dsn, Schema: "public"}.open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var left int
	err = db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d tables are left (%v)", left, err)
	}
}

// admit ends the quarantine of the new servers of a quorum.
func admit(t *testing.T, url string) {
	t.Helper()
	engine, err := stores.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	if err := engine.(*quorumlock.Engine).Admit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestSeats(t *testing.T) {
	program := build(t)
	t.Run("fencing", func(t *testing.T) {
		out, _ := sell(t, program, 0, "-rounds", "20")
		wantSoldOnce(t, out, 20)
	})
	t.Run("no fencing", func(t *testing.T) {
		out, _ := sell(t, program, 0, "-rounds", "5", "-fencing=off")
		wantSoldTwice(t, out)
	})
	t.Run("fencing of writes only", func(t *testing.T) {
		out, _ := sell(t, program, 0, "-rounds", "4", "-fencing=write")
		if s := summaryOf(t, out); s.DoubleSold != 2 || s.Refused != 2 || s.Refunded != 2 {
			t.Errorf("with a check of writes only: %+v, want every other seat sold twice\n%s", s, out)
		}
	})
	t.Run("locks in Redis", func(t *testing.T) {
		server := testsvc.Redis(t)
		out, _ := sell(t, program, 0, "-rounds", "5", "-store", server.URL, "-workers", "2")
		wantSoldOnce(t, out, 5)
		out, _ = sell(t, program, 0, "-rounds", "2", "-store", server.URL, "-fencing=off")
		wantSoldTwice(t, out)
	})
	t.Run("locks in a quorum", func(t *testing.T) {
		servers := []string{testsvc.Redis(t).Addr, testsvc.Redis(t).Addr, testsvc.Redis(t).Addr}
		quorum := "quorum+redis://" + strings.Join(servers, ",")
		admit(t, quorum)
		out, _ := sell(t, program, 0, "-rounds", "4", "-store", quorum)
		wantSoldOnce(t, out, 4)
	})
	t.Run("bookings in PostgreSQL", func(t *testing.T) {
		dsn := testsvc.Postgres(t).DSN
		out, _ := sell(t, program, 0, "-rounds", "20", "-postgres", dsn)
		wantSoldOnce(t, out, 20)
		out, _ = sell(t, program, 0, "-rounds", "3", "-postgres", dsn, "-fencing=off")
		wantSoldTwice(t, out)
		wantNothingLeft(t, dsn)
	})
	t.Run("a store that is not there", func(t *testing.T) {
		_, errs := sell(t, program, exitFailed, "-rounds", "1", "-store", "redis://127.0.0.1:1")
		if !strings.Contains(errs, "cannot connect") {
			t.Errorf("stderr: %s", errs)
		}
	})
	t.Run("no store of ours", func(t *testing.T) {
		_, errs := sell(t, program, exitFailed, "-rounds", "1", "-store", "ftp://host")
		if !strings.Contains(errs, `unknown scheme "ftp": use sqlite:///path/file.db, redis://host:port`) {
			t.Errorf("stderr: %s", errs)
		}
	})
	for _, args := range [][]string{{"-rounds", "0"}, {"-workers", "1"}, {"-fencing", "maybe"}, {"-store", "memory:"}, {"x"}, {"-nonsense"}} {
		if out, errs := sell(t, program, exitFailed, args...); out != "" || errs == "" {
			t.Errorf("%q: stdout %q, stderr %q", args, out, errs)
		}
	}
}

// TestProblem checks that problem reports every result that differs from the expected one.
func TestProblem(t *testing.T) {
	good := summary{Fencing: "on", Rounds: 3, Sold: 3, Refused: 3, Refunded: 3}
	if p := good.problem(); p != "" {
		t.Errorf("%+v: %s", good, p)
	}
	for what, change := range map[string]func(*summary){
		"sold twice":    func(s *summary) { s.DoubleSold = 1 },
		"one not sold":  func(s *summary) { s.Sold = 2 },
		"too few stale": func(s *summary) { s.Refused, s.Refunded = 2, 2 },
		"not refunded":  func(s *summary) { s.Refunded = 2 },
		"paid in vain":  func(s *summary) { s.Unsettled = 1 },
		"shows nothing": func(s *summary) { s.Fencing, s.Refused, s.Refunded = "off", 0, 0 },
	} {
		s := good
		change(&s)
		if s.problem() == "" {
			t.Errorf("%s: no problem with %+v", what, s)
		}
	}
}
