//go:build soaknet && linux

package nettest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/net"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

const (
	cutTTL = 2 * time.Second // and the waiter TTL
	// cutGap is how long no lock may be granted if the holder and all waiters behind it are cut
	// off. It allows for the holder's lease, a hand-over to a waiter that does not receive it, and
	// a look at the store.
	cutGap = cutTTL + cutTTL + slack
)

// TestCutHolders checks that clients that are cut off, in whatever way, end their work before
// others begin. INVARIANT I1, I3.
func TestCutHolders(t *testing.T) {
	for kind, cut := range cuts {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := net.New(t)
			store, hosts := n.Host("store"), n.Hosts("a", "b", "c")
			url, d := redisOn(t, store), &diary{}
			for _, h := range hosts {
				d.crewOn(t, h, takeTurns, traffic.Job{Store: url, Workers: 4, Names: 2, TTL: cutTTL, Hold: 100 * time.Millisecond})
			}
			rounds := soak.Count(2, 25)
			began := eventually(t, "everybody works", func() bool { return len(d.all()) == len(hosts) })
			for i := range rounds {
				cut(n, hosts[i%len(hosts)], store)
				time.Sleep(cutTTL * 3 / 2) // while the cut lasts
				n.Heal()
				healed := time.Now()
				eventually(t, "who was cut off works again", func() bool {
					_, ok := d.first(hosts[i%len(hosts)].Name, healed)
					return ok
				})
			}
			v, gap := d.want(t), d.gap(began, time.Now())
			bound := cutGap
			if kind == portBlocked {
				bound += cutTTL * 3 / 2 // no client reaches the store
			}
			if gap > bound {
				t.Errorf("nobody was granted a lock for %s", gap)
			}
			report.Row(t, "clients of three hosts take turns, a host: "+kind, fmt.Sprintf("0 overlaps, tokens strict; a grant within %s: a TTL, a waiter TTL, and the cut where it is one for all", bound),
				"%d cuts of %s, TTL %s: %d leases, %d overlaps, %d tokens not greater; longest time without a grant %s", rounds, cutTTL*3/2, cutTTL, v.Leases, v.Overlaps, v.Disorder, gap.Round(time.Millisecond))
		})
	}
}

// TestHeedlessHoldersAreSeen checks that the diary shows overlaps of clients that continue after
// their lease ended.
func TestHeedlessHoldersAreSeen(t *testing.T) {
	t.Parallel()
	n := net.New(t)
	store, hosts := n.Host("store"), n.Hosts("a", "b")
	url, d := redisOn(t, store), &diary{}
	d.crewOn(t, hosts[0], heedless, traffic.Job{Store: url, Workers: 1, Names: 1, TTL: cutTTL, Hold: 10 * time.Second})
	eventually(t, "somebody works", func() bool { return len(d.all()) == 1 })
	d.crewOn(t, hosts[1], takeTurns, traffic.Job{Store: url, Workers: 1, Names: 1, TTL: cutTTL, Hold: 10 * time.Millisecond})
	n.Cut(hosts[0], store)
	eventually(t, "an overlap is seen", func() bool { return d.verdict().Overlaps > 0 })
	t.Log(d.verdict().Errors[0])
}

// runTTL is the --ttl of the runs.
const runTTL = 3 * time.Second

// A duel is a run that is cut off, and a rival that waits for its lock.
type duel struct {
	between time.Duration // from the job's last mark to the rival's first
	exit    time.Duration // from the job's last mark to the exit of holdfast
	paused  time.Duration // longest pause of the machine in that time
}

// fight cuts off the host of a run, and returns after the rival has run.
func fight(t *testing.T, n *net.Net, a, b, store *net.Host, url string, cut func(*net.Net, *net.Host, *net.Host), wantStatus int, flags ...string) (d duel) {
	t.Helper()
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
	first := run(t, a, url, append(append([]string{"run", "--ttl", runTTL.String()}, flags...), "job", "--", os.Args[0], marker, ours)...)
	eventually(t, "the job works", func() bool { _, _, ok := marks(t, ours); return ok })
	rival := run(t, b, url, "run", "-v", "--ttl", runTTL.String(), "-w", "60", "job", "--", "sh", "-c", `"$0" marks "$1" & sleep 0.3; kill $!`, os.Args[0], theirs).Await("waiting")
	pause := testsvc.WatchPauses()
	cut(n, a, store)
	if cutsAll := len(flags) == 0 && wantStatus == 79; cutsAll {
		ended, status := first.Wait(patience)
		if status != wantStatus {
			t.Errorf("the run that was cut off ends with %d, want %d: %s", status, wantStatus, first.Output())
		}
		_, last, _ := marks(t, ours)
		d.exit = ended.Sub(last)
	}
	d.paused = pause()
	n.Heal() // a blocked port is blocked for both hosts
	if _, status := rival.Wait(patience); status != 0 {
		t.Errorf("the rival ends with %d: %s", status, rival.Output())
	}
	_, last, _ := marks(t, ours)
	began, _, _ := marks(t, theirs)
	d.between = began.Sub(last)
	return d
}

// TestCutRuns checks that the job of a host that is cut off ends before a rival's job begins, and
// that holdfast does not wait for a store that does not reply. INVARIANT I1.
func TestCutRuns(t *testing.T) {
	const exitWithin = 300 * time.Millisecond
	for kind, cut := range cuts {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := net.New(t)
			store, a, b := n.Host("store"), n.Host("a"), n.Host("b")
			url, rounds := redisOn(t, store), soak.Count(1, 20)
			least, exits, late := time.Hour, []time.Duration{}, 0
			for range rounds {
				d := fight(t, n, a, b, store, url, cut, 79)
				least, exits = min(least, d.between), append(exits, d.exit)
				// A pause may delay the job, its watcher and holdfast, one after the other.
				if d.exit > exitWithin+3*d.paused {
					late++
					t.Errorf("holdfast ended %s after its job, want %s; the machine paused for %s", d.exit, exitWithin, d.paused)
				}
			}
			slices.Sort(exits)
			if least <= 0 {
				t.Errorf("the rival began %s before the last mark of the job that was cut off", -least)
			}
			report.Row(t, "the host of holdfast run: "+kind, fmt.Sprintf("status 79; the job has ended before that of the rival begins; holdfast ends within %s of its job", exitWithin),
				"%d runs, TTL %s: the rival began %s after the last mark at the least; holdfast ended %s after it (median; at most %s), %d times late but for pauses of the machine",
				rounds, runTTL, least.Round(time.Millisecond), exits[rounds/2].Round(time.Millisecond), exits[rounds-1].Round(time.Millisecond), late)
		})
	}
}

// TestJobsThatGoOnAreSeen checks that with --on-lost ignore the job continues, and that its marks
// show it.
func TestJobsThatGoOnAreSeen(t *testing.T) {
	t.Parallel()
	n := net.New(t)
	store, a, b := n.Host("store"), n.Host("a"), n.Host("b")
	d := fight(t, n, a, b, store, redisOn(t, store), func(n *net.Net, a, s *net.Host) {
		n.Cut(a, s)
		time.Sleep(runTTL + slack) // while the cut lasts
	}, 0, "--on-lost", "ignore")
	if d.between >= 0 {
		t.Errorf("the rival began %s after the last mark of a job that goes on", d.between)
	}
}
