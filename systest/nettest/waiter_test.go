//go:build soaknet && linux

package nettest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/systest/net"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// waiterTTL is the TTL of a place in the queue, for leases with the default TTL or more.
const waiterTTL = 5 * time.Second

// TestCutWaiters checks that a waiter that is cut off delays those behind it by its waiter TTL at
// most, even if its requests still reach the store. INVARIANT I7.
func TestCutWaiters(t *testing.T) {
	for kind, cut := range cuts {
		if kind == portBlocked {
			continue // not a fault of one waiter
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := net.New(t)
			store, holder, waiter, behind := n.Host("store"), n.Host("holder"), n.Host("waiter"), n.Host("behind")
			url, rounds := redisOn(t, store), soak.Count(2, 20)
			var longest time.Duration
			for i := range rounds {
				name := fmt.Sprintf("job-%d", i)
				longest = max(longest, passes(t, n, holder, waiter, behind, store, url, name, cut, time.Duration(i%4)*600*time.Millisecond))
				n.Heal()
			}
			if longest > waiterTTL+slack {
				t.Errorf("the waiter that was cut off delayed the next by %s, want %s", longest, waiterTTL)
			}
			report.Row(t, "the first of those who wait: "+kind, "the next is served within one waiter TTL",
				"%d times: the next was served %s after the release at the latest, waiter TTL %s", rounds, longest.Round(time.Millisecond), waiterTTL)
		})
	}
}

// passes cuts off the first waiter before the release, and returns how long after the release the
// next waiter is served.
func passes(t *testing.T, n *net.Net, holder, waiter, behind, store *net.Host, url, name string, cut func(*net.Net, *net.Host, *net.Host), before time.Duration) time.Duration {
	t.Helper()
	dir := t.TempDir()
	go1, never, served := filepath.Join(dir, "go"), filepath.Join(dir, "never"), filepath.Join(dir, "served")
	held := run(t, holder, url, "run", name, "--", "sh", "-c", `until [ -e "$0" ]; do sleep 0.02; done`, go1)
	eventually(t, "the lock is held", func() bool {
		p := run(t, store, url, "check", name)
		_, status := p.Wait(patience)
		return status == 0
	})
	first := run(t, waiter, url, "run", name, "--", "touch", never)
	eventually(t, "the first waits", func() bool { return queued(t, store, url, name) == 1 })
	next := run(t, behind, url, "run", name, "--", "sh", "-c", `date +%s%N >"$0"`, served)
	eventually(t, "the next waits", func() bool { return queued(t, store, url, name) == 2 })
	cut(n, waiter, store)
	time.Sleep(before) // so that some of its refreshes fail
	if err := os.WriteFile(go1, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	released, status := held.Wait(patience)
	if status != 0 {
		t.Errorf("the holder ends with %d: %s", status, held.Output())
	}
	if _, status := next.Wait(patience); status != 0 {
		t.Errorf("the next ends with %d: %s", status, next.Output())
	}
	if _, err := os.Stat(never); err == nil {
		t.Error("the waiter that was cut off was served")
	}
	first.Signal(os.Kill)
	at, _, ok := marks(t, served)
	if !ok {
		t.Fatal("the next was not served")
	}
	return at.Sub(released)
}
