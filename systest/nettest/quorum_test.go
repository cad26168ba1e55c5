//go:build soaknet && linux

package nettest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/systest/net"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

const (
	quorumTTL = 2 * time.Second
	// quorumGap is how long no lock may be granted while all clients reach a majority. It allows
	// for a lease whose holder does not, and for a loaded machine.
	quorumGap = 2*quorumTTL + slack
)

// quorumOn starts three members, each on its own host, and ends the quarantine of the new members.
func quorumOn(t *testing.T, n *net.Net) (members []*net.Host, url string) {
	t.Helper()
	var addrs []string
	members = n.Hosts("q1", "q2", "q3")
	for _, h := range members {
		addrs = append(addrs, strings.TrimPrefix(redisOn(t, h, "--appendonly", "yes"), "redis://"))
	}
	url = "quorum+redis://" + strings.Join(addrs, ",")
	p := run(t, members[0], url, "doctor", "--admit")
	if _, status := p.Wait(patience); status != 0 {
		t.Fatalf("doctor --admit ends with %d: %s", status, p.Output())
	}
	return members, url
}

// views are which members each client reaches. In all views except the last, each client reaches a
// majority.
var views = []struct {
	what     string
	majority bool
	cut      func(n *net.Net, clients, members []*net.Host)
}{
	{"each client sees two others of three members", true, func(n *net.Net, c, m []*net.Host) {
		for i := range c {
			n.Cut(c[i], m[i])
		}
	}},
	{"each client's requests to another member are lost", true, func(n *net.Net, c, m []*net.Host) {
		for i := range c {
			n.OneWay(c[i], m[(i+1)%3])
		}
	}},
	{"each client does not hear another member", true, func(n *net.Net, c, m []*net.Host) {
		for i := range c {
			n.OneWay(m[(i+2)%3], c[i])
		}
	}},
	{"one reaches a member that does not reach him, another the other way round", true, func(n *net.Net, c, m []*net.Host) {
		n.OneWay(c[0], m[0])
		n.OneWay(m[0], c[1])
	}},
	{"each client sees another member only", false, func(n *net.Net, c, m []*net.Host) {
		for i := range c {
			n.Cut(c[i], m[i])
			n.OneWay(m[(i+1)%3], c[i])
		}
	}},
}

// TestQuorumViews checks that there is one holder at a time, whichever members each client reaches,
// and in whichever direction. INVARIANT I1, I2.
func TestQuorumViews(t *testing.T) {
	t.Parallel()
	n := net.New(t)
	members, url := quorumOn(t, n)
	clients, d := n.Hosts("a", "b", "c"), &diary{}
	for _, h := range clients {
		d.crewOn(t, h, takeTurns, traffic.Job{Store: url, Workers: 2, Names: 2, TTL: quorumTTL, Hold: 20 * time.Millisecond})
	}
	rounds, length := soak.Count(1, 10), 4*time.Second
	var gap time.Duration
	for range rounds {
		for _, view := range views {
			healed := time.Now()
			eventually(t, "everybody works", func() bool { return d.since(healed) == len(clients) })
			began := time.Now()
			view.cut(n, clients, members)
			time.Sleep(length) // while the faults last
			if view.majority {
				gap = max(gap, d.gap(began, time.Now()))
			} else if first, ok := d.first("", began.Add(quorumTTL)); ok {
				t.Errorf("%s: %s was granted without a majority", view.what, first.Name)
			}
			n.Heal()
		}
	}
	v := d.want(t)
	if gap > quorumGap {
		t.Errorf("nobody was granted a lock for %s, although all see a majority", gap)
	}
	report.Row(t, "clients of a quorum see different members, in rings and in one direction only", "0 overlaps, tokens strict; grants go on where all see a majority, and nothing is granted where none does",
		"%d partitions of %s: %d leases, %d overlaps, %d tokens not greater; longest time without a grant %s", rounds*len(views), length, v.Leases, v.Overlaps, v.Disorder, gap.Round(time.Millisecond))
}

// since returns on how many hosts a lease began after an instant.
func (d *diary) since(after time.Time) (hosts int) {
	for host := range d.all() {
		if _, ok := d.first(host, after); ok {
			hosts++
		}
	}
	return hosts
}

// TestQuorumShares checks that a client that releases a lock of a quorum does not get it again
// before other clients, which can only retry. It checks short work, and work so long that the
// others retry seldom.
func TestQuorumShares(t *testing.T) {
	for _, c := range []struct {
		hold, step time.Duration
		least      int // of a hundred turns, for each
	}{
		{2 * time.Millisecond, time.Millisecond, 10},
		{400 * time.Millisecond, time.Millisecond, 10},
		{20 * time.Millisecond, 20 * time.Millisecond, 1}, // a distant host learns late that the lock is free
	} {
		t.Run(fmt.Sprintf("%s of work, %s apart", c.hold, c.step), func(t *testing.T) {
			t.Parallel()
			n := net.New(t)
			members, url := quorumOn(t, n)
			clients, d := n.Hosts("a", "b", "c"), &diary{}
			for i, h := range clients {
				for _, m := range members {
					n.Link(h, m).Delay(time.Duration(i)*c.step/2, 0)
				}
				d.crewOn(t, h, takeTurns, traffic.Job{Store: url, Workers: 1, Names: 1, TTL: 10 * time.Second, Hold: c.hold})
			}
			eventually(t, "everybody works", func() bool { return len(d.all()) == len(clients) })
			began, length := time.Now(), soak.For(20*time.Second, 2*time.Minute)
			time.Sleep(length) // while they work
			v, counts, total, least := d.want(t), []string{}, 0, 1<<30
			for _, h := range clients {
				turns := 0
				for _, seen := range d.all()[h.Name] {
					if seen.Start > began.UnixNano() {
						turns++
					}
				}
				counts, total, least = append(counts, fmt.Sprint(turns)), total+turns, min(least, turns)
			}
			if least*100 < total*c.least {
				t.Errorf("turns by host: %s; want %d %% for each at least", strings.Join(counts, ", "), c.least)
			}
			report.Row(t, fmt.Sprintf("three hosts take turns at a lock of a quorum, 0, %s and %s away, up to %s of work", c.step, 2*c.step, c.hold), fmt.Sprintf("each has %d %% of the turns at least", c.least),
				"%s: %s turns; %d leases, %d overlaps", length.Round(time.Second), strings.Join(counts, ", "), v.Leases, v.Overlaps)
		})
	}
}
