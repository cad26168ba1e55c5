package systest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// TestSentinelMachineVanishes checks the usual layout, with a sentinel on the host of each server.
// If the master's host vanishes, so does the sentinel to which the client is subscribed, and no
// connection is reset. Work continues as soon as after an announced failover.
func TestSentinelMachineVanishes(t *testing.T) {
	t.Parallel()
	for i := range soak.Count(1, 20) {
		g := testsvc.Sentinel(t)
		s := newShift(t, openEngine(t, g.URL))
		eventually(t, "everybody works", func() bool { return s.acquired.Load() > failoverWorkers })
		old, beside := g.Master(), listensTo(t, g)
		others := slices.DeleteFunc(slices.Clone(g.Sentinels), func(s *testsvc.Server) bool { return s == beside })
		began := time.Now()
		beside.Stop()
		old.Stop()
		eventually(t, "another master", func() bool { return g.MasterOf(others...) != old })
		s.goesOn(fmt.Sprintf("machine %d vanishes", i+1), s.names, time.Now(), time.Since(began))
		s.end()
		s.check()
		s.report("the master's machine vanishes with the sentinel that the client listens to")
		beside.Cont()
		old.Cont()
	}
}

// listensTo returns the sentinel to which our client is subscribed.
func listensTo(t *testing.T, g *testsvc.Sentinels) *testsvc.Server {
	t.Helper()
	var found *testsvc.Server
	eventually(t, "the client listens to a sentinel", func() bool {
		for _, s := range g.Sentinels {
			clients, err := s.Do("CLIENT", "LIST", "TYPE", "pubsub")
			if err == nil && strings.Contains(clients, "name=holdfast") {
				found = s
				return true
			}
		}
		return false
	})
	return found
}
