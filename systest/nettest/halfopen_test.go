//go:build soaknet && linux

package nettest

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/systest/net"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// TestHalfOpenConnections checks that no lease is lost if all old connections are dead and new
// connections work, as after a firewall lost its state. INVARIANT I9.
func TestHalfOpenConnections(t *testing.T) {
	for _, ttl := range []time.Duration{3 * time.Second, 6 * time.Second, 15 * time.Second} {
		t.Run(ttl.String(), func(t *testing.T) {
			t.Parallel()
			const leases = 10
			n := net.New(t)
			store, h := n.Host("store"), n.Host("a")
			url, d := redisOn(t, store), &diary{}
			d.crewOn(t, h, holdAll, traffic.Job{Store: url, Workers: leases, TTL: ttl})
			eventually(t, "all are held", func() bool { return d.held("a") == leases })
			rounds := max(2, int(soak.For(2*ttl, 4*time.Minute)/(ttl+ttl/2)))
			for i := range rounds {
				// Each round hits another part of the interval between two renewals.
				time.Sleep(ttl + ttl/2 + time.Duration(i%4)*ttl/12)
				n.Forget(h, store)
			}
			time.Sleep(ttl + ttl/2) // so that a lease that cannot be renewed ends
			v, lost := d.want(t), d.lost()
			if len(lost) > 0 {
				t.Errorf("%d leases were lost: %s", len(lost), lost[0])
			}
			report.Row(t, fmt.Sprintf("all connections half open at once, TTL %s", ttl), "0 leases lost",
				"%d times, a client with %d leases: %d of %d leases lost, %d overlaps", rounds, leases, len(lost), v.Leases, v.Overlaps)
		})
	}
}

// TestShortCuts checks that leases survive a cut that is a second shorter than two thirds of their
// TTL. TCP needs the second to retransmit after the cut.
func TestShortCuts(t *testing.T) {
	t.Parallel()
	const ttl, leases = 9 * time.Second, 10
	const cut = ttl*2/3 - time.Second
	n := net.New(t)
	store, h := n.Host("store"), n.Host("a")
	url, d := redisOn(t, store), &diary{}
	d.crewOn(t, h, holdAll, traffic.Job{Store: url, Workers: leases, TTL: ttl})
	eventually(t, "all are held", func() bool { return d.held("a") == leases })
	rounds := soak.Count(2, 30)
	for i := range rounds {
		time.Sleep(ttl/3 + time.Duration(i%4)*ttl/12)
		n.Cut(h, store)
		time.Sleep(cut) // while the cut lasts
		n.Heal()
		time.Sleep(ttl / 3)
	}
	v, lost := d.want(t), d.lost()
	if len(lost) > 0 {
		t.Errorf("%d leases were lost: %s", len(lost), lost[0])
	}
	report.Row(t, fmt.Sprintf("cuts of %s, TTL %s", cut, ttl), "0 leases lost", "%d cuts, a client with %d leases: %d of %d leases lost", rounds, leases, len(lost), v.Leases)
}
