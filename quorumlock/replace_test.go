package quorumlock_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// TestReplacedServers replaces all servers one after another, as docs/quorum.md describes, and
// changes two clients at different times. A lease lasts if no other client tries for it. A lease
// for which another client tries is never granted twice, and is acquired anew in between.
func TestReplacedServers(t *testing.T) {
	virtual(t, func(t *testing.T) {
		servers := stores(t, 3)
		first, second := newRig(t, servers), newRig(t, servers)
		quiet, busy := first.take("quiet"), second.take("busy")
		pass := func(d time.Duration) {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); settle(ttl / 3) {
				if err := errors.Join(first.extend(quiet), second.extend(busy)); err != nil {
					t.Fatalf("extend: %v", err)
				}
				if reply, err := first.Acquire(t.Context(), ask("busy")); err == nil && reply.Outcome == driver.Granted {
					t.Fatal("two holders")
				}
			}
		}
		for i := range servers {
			settle(0)                // all servers have both leases
			first.links[i].set(down) // and never up again
			second.links[i].set(down)
			pass(20 * time.Second)
			servers = slices.Clone(servers)
			servers[i] = mem.NewMember()
			first = newRig(t, servers)
			pass(20 * time.Second)
			second = newRig(t, servers)
			pass(quarantine)
			if got := first.holders(quiet); !slices.Equal(got, []uint64{quiet.token, quiet.token, quiet.token}) {
				t.Fatalf("after the replacement of server %d the servers have %d, want %d", i+1, got, quiet.token)
			}
			second.mustRelease(busy)
			settle(0)
			next := second.take("busy")
			if next.token <= busy.token {
				t.Errorf("token %d after %d", next.token, busy.token)
			}
			busy = next
		}
	})
}

// TestReplacedWithoutExtension replaces a server that is one of the two with a lease, and the
// holder does not know the new server. The lease ends before another client is granted it.
func TestReplacedWithoutExtension(t *testing.T) {
	virtual(t, func(t *testing.T) {
		servers := stores(t, 3)
		old := newRig(t, servers)
		old.links[1].set(down)
		lease := old.take("a") // on servers 1 and 3
		settle(0)
		old.links[1].set(up)
		old.links[2].set(down) // and never up again
		next := newRig(t, []*mem.Member{servers[0], servers[1], mem.NewMember()})
		began := time.Now()
		settle(time.Millisecond) // the clocks advance
		for {
			reply, err := next.Acquire(t.Context(), ask("a"))
			if err == nil && reply.Outcome == driver.Granted {
				if took := time.Since(began); took < ttl || reply.Token <= lease.token {
					t.Errorf("granted after %s with the token %d after %d", took, reply.Token, lease.token)
				}
				return
			}
			if time.Since(began) > 2*ttl {
				t.Fatalf("not granted: %+v, %v", reply, err)
			}
			settle(time.Second)
		}
	})
}
