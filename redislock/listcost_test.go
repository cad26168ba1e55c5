package redislock

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
)

// TestListOfRememberedNames: a list asks of names that are only remembered nothing but
// whether they are used, and that of many with one command.
func TestListOfRememberedNames(t *testing.T) {
	t.Parallel()
	server := testsvc.Redis(t)
	e, admin := open(t, server.URL), plain(t, server)
	const remembered, held = 1000, 10
	for i := range remembered {
		drivertest.Cycle(t, e, fmt.Sprint("remembered/", i))
	}
	for i := range held {
		drivertest.Granted(t, e, drivertest.Request(fmt.Sprint("held/", i), time.Hour))
	}
	do(t, admin, "CONFIG RESETSTAT")
	n := 0
	for lock, err := range e.List(t.Context(), "") {
		if n++; err != nil || len(lock.Holders) != 1 {
			t.Fatal(lock, err)
		}
	}
	stats := commandStats(t, admin)
	const together = 16 // in used.lua
	steps := stats["scan"]
	exists := remembered/together + steps + (together+1)*held
	if n != held || stats["exists"] > exists || stats["get"] > 2*held || stats["pttl"] > held || stats["evalsha"] > 2*steps {
		t.Errorf("%d locks in the list, which was %v; want %d EXISTS at most", n, stats, exists)
	}
}
