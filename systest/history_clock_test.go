//go:build linux

package systest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/systest/fault"
	"github.com/holdfast-locks/holdfast/systest/model/lease"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// TestHistoryFencedClockSteps checks histories while the store's clock steps forward and back.
// INVARIANT I2, INVARIANT I8.
func TestHistoryFencedClockSteps(t *testing.T) { onEachEngine(t, historyFencedClockSteps) }

func historyFencedClockSteps(t *testing.T, by traffic.Kind) {
	clocks := fault.NewClocks(t)
	wrong := []time.Duration{0, 5 * time.Second, -5 * time.Second, time.Hour, -time.Hour}
	steps := 0
	r := runHistory(t, by, soak.For(1500*time.Millisecond, time.Minute), func(s *store, h *historyRun) {
		h.loseReplies(10)
		h.every(100*time.Millisecond, func(int) {
			steps++
			by := wrong[rand.IntN(len(wrong))]
			h.history.During("", func() { clocks.Step(s.server.PID(), by) })
		})
	})
	v := r.history.Check(t, lease.Model{Mode: lease.Fenced, Linger: traffic.LocksLinger})
	accepted, refused := r.resource.Log.Check(t)
	_, stuck := r.closings(t) // a step back may have made a lease longer
	report.Row(t, of(by)+"the store's clock steps by ±5 s and ±1 h, and 10 % of replies lost, 32 clients, 8 names",
		"0 illegal histories: tokens strict, stale extends and releases refused",
		"%d steps in %s: %s; %s; resource: %d writes, %d stale ones refused; %s", steps, r.took, v, r.lost, accepted, refused, stuck)
}
