//go:build linux

package systest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/systest/fault"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// A succession is a master and the replica that takes over from it, without the master's last
// writes and with a clock that is behind.
type succession struct {
	master, heir *store
	gate         *fence.Gate
}

// newSuccession starts a master and its replica, and then disconnects the replica.
func newSuccession(t *testing.T, clocks *fault.Clocks, behind time.Duration) *succession {
	t.Helper()
	s := &succession{newStore(t, "--repl-diskless-sync-delay", "0"), newStore(t), traffic.NewGate(t)}
	client := newClient(t, s.master.engine, nil)
	s.heir.do(t, "REPLICAOF", "127.0.0.1", fmt.Sprint(s.master.server.Port()))
	if err := s.write(t, acquireWith(t, client, "a", nil)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica has seen that, and what came after it", func() bool {
		s.master.do(t, "SET", "after", "that") // WAIT covers the writes of its own connection
		n, err := s.master.do(t, "WAIT", "1", "100").AsInt64()
		return err == nil && n == 1
	})
	s.heir.do(t, "REPLICAOF", "NO", "ONE") // from now on it receives nothing
	clocks.Step(s.heir.server.PID(), -behind)
	return s
}

// write writes to the resource under a lease, and releases the lease.
func (s *succession) write(t *testing.T, l *holdfast.Lease) error {
	t.Helper()
	err := s.gate.Advance("a", l)
	if releaseErr := l.Release(t.Context()); releaseErr != nil {
		t.Errorf("release: %v", releaseErr)
	}
	return err
}

// run lets the master grant a lease that is lost when the master is killed. It returns the heir's
// first grant, and by how much the gap between the two grants exceeds the lag of the heir's clock.
func (s *succession) run(t *testing.T, gap, behind time.Duration) (spare time.Duration, next *holdfast.Lease) {
	t.Helper()
	lost := acquireWith(t, newClient(t, s.master.engine, nil), "a", nil)
	granted := time.Now()
	if err := s.gate.Advance("a", lost); err != nil {
		t.Fatalf("the last write of the old master's holder: %v", err)
	}
	s.master.server.Kill()
	time.Sleep(gap) // until the heir becomes master
	next = acquireWith(t, newClient(t, s.heir.engine, nil), "a", nil)
	spare = time.Since(granted) - behind
	s.master.server.Restart() // so that its client can release its leases
	if grew := next.Token() > lost.Token(); grew != (spare > 0) {
		t.Errorf("token %d after %d with %s to spare", next.Token(), lost.Token(), spare)
	}
	return spare, next
}

// TestFailoverThatLosesWrites checks that tokens grow across a failover that loses the last grants,
// if the failover takes longer than the clocks differ. If it does not, the resource refuses the new
// holder, and one more acquire with MinToken repairs that. INVARIANT I2.
func TestFailoverThatLosesWrites(t *testing.T) {
	clocks := fault.NewClocks(t)
	each := soak.Count(1, 10)
	strict, mended := 0, 0
	for range each {
		s := newSuccession(t, clocks, 100*time.Millisecond)
		spare, next := s.run(t, 300*time.Millisecond, 100*time.Millisecond)
		if err := s.write(t, next); err != nil {
			t.Errorf("with %s to spare the resource refuses the new holder: %v", spare, err)
		} else {
			strict++
		}

		s = newSuccession(t, clocks, 5*time.Second)
		_, next = s.run(t, 0, 5*time.Second)
		var stale *fence.StaleError
		if err := s.write(t, next); !errors.As(err, &stale) {
			t.Fatalf("the resource accepts a token below its mark: %v", err)
		}
		again := acquireWith(t, newClient(t, s.heir.engine, nil), "a", &holdfast.AcquireOptions{MinToken: stale.Current})
		if err := s.write(t, again); err != nil {
			t.Errorf("a token above the mark %d is refused: %v", stale.Current, err)
		} else {
			mended++
		}
	}
	report.Row(t, "failover that loses the last writes", "tokens strict while the gap exceeds the skew; past that the resource refuses and MinToken mends it in one retry",
		"strict in %d of %d with a gap of 0.3 s and a skew of 0.1 s; refused and mended by one retry in %d of %d with a skew of 5 s", strict, each, mended, each)
}
