package redislock

import (
	"testing"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// TestLanesOpenInTurn checks that a further lane is opened when calls find the others in use, up to
// the number that few callers need, and that each is for one call.
func TestLanesOpenInTurn(t *testing.T) {
	server := testsvc.Redis(t)
	e, admin, ctx := open(t, server.URL), plain(t, server), limited(t)
	c := e.Store().Conn().(*conn)
	for n := range rediscore.MostDirect {
		if open := len(connections(t, admin)) - 1; open != n {
			t.Errorf("%d lanes are open, want %d", open, n)
		}
		var reserved rediscore.Lane
		drivertest.Eventually(t, "a further lane is reserved", func() bool {
			reserved = c.Begin(ctx)
			return reserved != nil
		})
		if reserved != c.lanes[n] {
			t.Fatalf("lane %d is not the next one", n+1)
		}
	}
	if c.Begin(ctx) != nil {
		t.Error("a lane is reserved twice")
	}
	c.lanes[1].end(true)
	if c.Begin(ctx) != c.lanes[1] {
		t.Error("a lane whose call has ended is not free")
	}
	for _, l := range c.lanes {
		l.end(true)
	}
}
