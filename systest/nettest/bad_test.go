//go:build soaknet && linux

package nettest

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/systest/net"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// TestBadNetworks checks that lost, late, duplicated and reordered packets cost only time.
// INVARIANT I1, I2, I9.
func TestBadNetworks(t *testing.T) {
	for _, loss := range []float64{0.05, 0.2} {
		t.Run(fmt.Sprintf("%.0f percent", loss*100), func(t *testing.T) {
			t.Parallel()
			const ttl, keepers = 10 * time.Second, 20
			n := net.New(t)
			store, hosts, keeper := n.Host("store"), n.Hosts("a", "b", "c"), n.Host("keeper")
			url, turns, kept := redisOn(t, store), &diary{}, &diary{}
			for _, h := range append(hosts, keeper) {
				n.Link(h, store).Delay(5*time.Millisecond, 10*time.Millisecond).Copies(0.02).Loss(loss)
			}
			for _, h := range hosts {
				turns.crewOn(t, h, takeTurns, traffic.Job{Store: url, Workers: 8, Names: 6, TTL: ttl, Hold: 20 * time.Millisecond})
			}
			kept.crewOn(t, keeper, holdAll, traffic.Job{Store: url, Workers: keepers, Name: "kept", TTL: ttl})
			eventually(t, "everybody works", func() bool { return len(turns.all()) == len(hosts) && kept.held("keeper") == keepers })
			length := soak.For(10*time.Second, 2*time.Minute)
			time.Sleep(length) // while the faults last
			v, lost := turns.want(t), append(turns.lost(), kept.lost()...)
			if len(lost) > 0 {
				t.Errorf("%d leases were lost: %s", len(lost), lost[0])
			}
			c := n.Counts()
			report.Row(t, fmt.Sprintf("%.0f %% of packets lost, 2 %% doubled, 10 to 30 ms a round trip, packets out of order", loss*100), "0 overlaps, tokens strict, 0 leases lost",
				"%s: %d leases, %d overlaps, %d tokens not greater; %d kept for the whole time; %d lost; of %d packets %d were lost, %d doubled",
				length, v.Leases, v.Overlaps, v.Disorder, kept.held("keeper"), len(lost), c.Carried+c.Lost, c.Lost, c.Copied)
		})
	}
}

// TestRunsRideOutLoss checks that a run that may wait does not fail because a distant network loses
// packets.
func TestRunsRideOutLoss(t *testing.T) {
	t.Parallel()
	n := net.New(t)
	store, h := n.Host("store"), n.Host("a")
	url := redisOn(t, store)
	n.Link(h, store).Delay(40*time.Millisecond, 0).Loss(0.05)
	const atOnce = 8
	total := soak.Count(16, 400)
	var mu sync.Mutex // guards the next two
	failures, longest := 0, time.Duration(0)
	for i := 0; i < total; i += atOnce {
		var all sync.WaitGroup
		for k := range min(atOnce, total-i) {
			began := time.Now()
			p := run(t, h, url, "run", "-w", "60", fmt.Sprintf("job-%d", k), "--", "true")
			all.Go(func() {
				ended, status, ok := p.TryWait(patience)
				mu.Lock()
				defer mu.Unlock()
				longest = max(longest, ended.Sub(began))
				if !ok || status != 0 {
					failures++
					t.Errorf("a run ends with %d: %s", status, p.Output())
				}
			})
		}
		all.Wait()
	}
	report.Row(t, "holdfast run -w 60, 80 ms a round trip, 5 % of packets lost", "status 0 in all", "%d of %d; the longest took %s", total-failures, total, longest.Round(time.Millisecond))
}

// TestBlackHole checks a path that silently loses large packets: renewals of many leases must
// arrive nevertheless.
func TestBlackHole(t *testing.T) {
	for _, leases := range []int{3, 100} {
		t.Run(fmt.Sprint(leases), func(t *testing.T) {
			t.Parallel()
			const ttl = 6 * time.Second
			n := net.New(t)
			store, h := n.Host("store"), n.Host("a")
			url, d := redisOn(t, store), &diary{}
			d.crewOn(t, h, holdAll, traffic.Job{Store: url, Workers: leases, TTL: ttl})
			eventually(t, "all are held", func() bool { return d.held("a") == leases })
			n.Link(h, store).MTU(1280)
			length := soak.For(3*ttl, 15*ttl)
			time.Sleep(length) // while the fault lasts
			v, lost := d.want(t), d.lost()
			if len(lost) > 0 {
				t.Errorf("%d of %d leases were lost: %s", len(lost), leases, lost[0])
			}
			report.Row(t, fmt.Sprintf("a path that loses packets of more than 1280 bytes, a client with %d leases", leases), "0 leases lost",
				"%s, TTL %s: %d leases, %d of them lost, %d overlaps; %d packets lost", length, ttl, v.Leases, len(lost), v.Overlaps, n.Counts().Lost)
		})
	}
}

// TestRunFarAway counts the round trips of a run before its command begins, and after it ended.
func TestRunFarAway(t *testing.T) {
	t.Parallel()
	const (
		rtt           = 80 * time.Millisecond
		before, after = 3, 1 // round trips: a connection, a greeting, the acquire; the release
	)
	n := net.New(t)
	store, h := n.Host("store"), n.Host("a")
	url := redisOn(t, store)
	measure := func(rounds int) (start, exit time.Duration) {
		var starts, exits []time.Duration
		for range rounds {
			file := filepath.Join(t.TempDir(), "marks")
			began := time.Now()
			ended, status := run(t, h, url, "run", "job", "--", "sh", "-c", `date +%s%N >"$0"`, file).Wait(patience)
			at, _, ok := marks(t, file)
			if status != 0 || !ok {
				t.Fatalf("a run ends with %d", status)
			}
			starts, exits = append(starts, at.Sub(began)), append(exits, ended.Sub(at))
		}
		slices.Sort(starts)
		slices.Sort(exits)
		return starts[rounds/2], exits[rounds/2]
	}
	rounds := soak.Count(5, 40)
	nearStart, nearExit := measure(rounds)
	n.Link(h, store).Delay(rtt/2, 0)
	start, exit := measure(rounds)
	trips := func(far, near time.Duration) float64 { return float64(far-near) / float64(rtt) }
	if got := trips(start, nearStart); got > before+0.5 {
		t.Errorf("the command began after %.1f round trips, want %d", got, before)
	}
	if got := trips(exit, nearExit); got > after+0.5 {
		t.Errorf("holdfast ended %.1f round trips after its command, want %d", got, after)
	}
	report.Row(t, "holdfast run, 80 ms a round trip", fmt.Sprintf("the command begins after %d round trips at most, holdfast ends %d after it at most", before, after),
		"medians of %d: the command began after %s, holdfast ended %s after it (without delay %s and %s): %.1f and %.1f round trips", rounds,
		start.Round(time.Millisecond), exit.Round(time.Millisecond), nearStart.Round(time.Millisecond), nearExit.Round(time.Millisecond), trips(start, nearStart), trips(exit, nearExit))
}
