package pgtest

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// TestCrash checks that a server that crashes under 64 clients loses no lease that it has granted,
// although it loses data not yet written. INVARIANT I1, I2.
func TestCrash(t *testing.T) {
	t.Parallel()
	server := testsvc.Postgres(t, "fsync=on", "full_page_writes=on")
	c := newCrowd(t, open(t, server), 8*time.Second)
	crashes := soak.Count(3, 50)
	for range crashes {
		c.goesOn()
		server.Restart()
	}
	c.goesOn()
	c.end()
	report.Row(t, "immediate stop of PostgreSQL under 64 clients, 16 names", "no lease is lost before its deadline, tokens grow",
		"%d crashes, %d leases, %d of them ended at their deadline", crashes, c.acquired.Load(), c.expired.Load())
}

// TestRunLeavesByItsDeadline checks that the command stops its job by the lease's deadline when the
// server is down. INVARIANT I3.
func TestRunLeavesByItsDeadline(t *testing.T) {
	t.Parallel()
	const ttl = 5 * time.Second
	server := testsvc.Postgres(t)
	engine := open(t, server)
	run := exec.Command(buildBinary(t), "run", "--store", server.URL, "--ttl", ttl.String(), "--kill-after", "1s", "nightly", "--", "sleep", "600")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	t.Cleanup(func() {
		if ended != nil {
			_ = run.Process.Kill()
			<-ended
		}
	})
	eventually(t, "the run has the lock", func() bool {
		if len(ended) > 0 {
			t.Fatal("the run has ended before")
		}
		lock, err := engine.Inspect(t.Context(), "nightly")
		return err == nil && len(lock.Holders) == 1
	})
	server.Kill()
	began := time.Now()
	select {
	case err := <-ended:
		ended = nil
		took := time.Since(began)
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 79 || took > ttl {
			t.Errorf("it ended after %s with %v, want status 79 within %s", took, err, ttl)
		}
		report.Row(t, "PostgreSQL is away under holdfast run", "status 79 within the TTL", "after %s, TTL %s", took.Round(time.Millisecond), ttl)
	case <-time.After(patience):
		t.Error("it does not end")
	}
}
