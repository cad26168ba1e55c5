//go:build linux

package systest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/systest/fault"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

const steppedTTL = 600 * time.Millisecond

// TestStoreClockSteps checks that steps of the store's clock under the lease of a dead holder break
// nothing. Tokens still grow, and the name is free at most a TTL after the step, even if the clock
// went back. INVARIANT I2, INVARIANT I8.
func TestStoreClockSteps(t *testing.T) {
	clocks := fault.NewClocks(t)
	steps := []time.Duration{5 * time.Second, -5 * time.Second, time.Hour, -time.Hour}
	s := newStore(t)
	client := newClient(t, s.engine, nil)
	dead := &holdfast.AcquireOptions{TTL: steppedTTL, KeepAlive: holdfast.KeepAliveOff}
	longest, strict := time.Duration(0), 0
	rounds := soak.Count(1, 10)
	for round := range rounds {
		for _, step := range steps {
			name := fmt.Sprintf("stepped/%d/%s", round, step)
			clocks.Step(s.server.PID(), 0)
			before := s.clock(t)
			last := acquireWith(t, client, name, dead)
			clocks.Step(s.server.PID(), step)
			stepped := time.Now()
			if moved := s.clock(t).Sub(before); (moved - step).Abs() > time.Second {
				t.Fatalf("the store's clock moved by %s, not by %s: nothing was tested", moved, step)
			}
			next := acquireWith(t, client, name, dead)
			longest = max(longest, time.Since(stepped))
			clocks.Step(s.server.PID(), 0) // and back again
			// A step forward ends the lease; its holder learns that from the release.
			if err := next.Release(t.Context()); errors.Is(err, holdfast.ErrLost) != (step < 0) {
				t.Errorf("%s: release: %v", name, err)
			}
			after := acquireWith(t, client, name, dead)
			if last.Token() < next.Token() && next.Token() < after.Token() {
				strict++
			} else {
				t.Errorf("%s: tokens %d, %d, %d", name, last.Token(), next.Token(), after.Token())
			}
		}
	}
	report.Row(t, "store's clock ±5 s, ±1 h", "tokens strict; after −1 h the name is free within its TTL",
		"tokens strict in %d of %d steps there and back; free after %s at the latest, TTL %s", strict, rounds*len(steps), longest.Round(time.Millisecond), steppedTTL)
	if bound := steppedTTL + 250*time.Millisecond; longest > bound {
		t.Errorf("a name was free %s after the step, want at most %s", longest, bound)
	}
}

// clock returns the store's time.
func (s *store) clock(t testing.TB) time.Time {
	t.Helper()
	now, err := s.do(t, "TIME").AsIntSlice()
	if err != nil || len(now) != 2 {
		t.Fatalf("TIME: %v, %v", now, err)
	}
	return time.Unix(now[0], now[1]*1000)
}
