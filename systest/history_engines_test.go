package systest

import (
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/drivertest"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/pglock"
	"github.com/holdfast-locks/holdfast/systest/model/lease"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
	"github.com/holdfast-locks/holdfast/systest/traffic"
)

// kindOf returns the engine of a worker in a mixed run: two crews use each engine.
func kindOf(worker int) traffic.Kind {
	return traffic.Kinds[worker/historyWorkers%len(traffic.Kinds)]
}

// TestHistoryOnSentinel checks histories on a Sentinel's master that loses replies. INVARIANT I2,
// I5, I6.
func TestHistoryOnSentinel(t *testing.T) {
	g := testsvc.Sentinel(t)
	historyOnServers(t, "the master that sentinels name", g.URL, g.Servers[:1])
}

func TestHistoryOnCluster(t *testing.T) {
	c := testsvc.RedisCluster(t)
	historyOnServers(t, "the nodes of a cluster", c.URL, c.Masters)
}

func historyOnServers(t *testing.T, what, url string, masters []*testsvc.Server) {
	looks := openEngine(t, url)
	onEachEngine(t, func(t *testing.T, by traffic.Kind) {
		length := soak.For(time.Second, time.Minute)
		r := runHistoryOn(t, looks, traffic.Job{Store: url, By: by}, masters, length, func(h *historyRun) { h.loseReplies(10) })
		v := r.history.Check(t, lease.Model{Mode: lease.Fenced, Linger: traffic.LocksLinger})
		accepted, refused := r.resource.Log.Check(t)
		stuck := r.checkStuck(t)
		report.Row(t, of(by)+"10 % of the replies of "+what+" lost (dropped, reset, black-holed), 32 clients, 8 names",
			"0 illegal histories, 0 names stuck more than 100 ms after their last holder",
			"%s: %s; %s; resource: %d writes, %d stale ones refused; %s", r.took, v, r.lost, accepted, refused, stuck)
		for _, m := range masters { // the next engine uses the same names
			if _, err := m.Do("FLUSHALL"); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestHistoryOfBothEngines checks that processes with different engines share locks, tokens and
// places, while replies are lost. On every second name all clients wait. INVARIANT I1, I2, I7.
func TestHistoryOfBothEngines(t *testing.T) {
	s := newStore(t)
	job := traffic.Job{Store: s.server.URL, Waits: true}
	r := runHistoryOn(t, s.engine, job, []*testsvc.Server{s.server}, soak.For(8*time.Second, time.Minute), func(h *historyRun) { h.loseReplies(10) })
	v := r.history.Check(t, lease.Model{Mode: lease.Fenced, Linger: traffic.LocksLinger})
	accepted, refused := r.resource.Log.Check(t)
	stuck := r.checkStuck(t)
	turns, mixed, wrong := r.checkTurns(t)
	report.Row(t, "redislock and goredislock, two processes each, on the same names; 10 % of replies lost (dropped, reset, black-holed), 32 clients, 8 names",
		"0 illegal histories, 0 waiters served before one that was queued earlier, 0 names stuck more than 100 ms after their last holder",
		"%s: %s; of %d neighbours in a queue %d out of turn, %d of them of different engines; %s; resource: %d writes, %d stale ones refused; %s",
		r.took, v, turns, wrong, mixed, r.lost, accepted, refused, stuck)
}

// TestHistoryOnPostgres checks histories of clients in four processes on PostgreSQL, while replies
// are lost. INVARIANT I1, I2, I5, I6, I7.
func TestHistoryOnPostgres(t *testing.T) {
	server := testsvc.Postgres(t, "max_connections=500")
	url := func(addr string) string { return "postgres://postgres@" + addr + "/postgres?sslmode=disable" }
	job := traffic.Job{}
	var links []*faultproxy.Proxy
	for range historyCrews {
		p := faultproxy.NewPostgres(t, server.Addr)
		links, job.Servers = append(links, p), append(job.Servers, url(p.Addr()))
	}
	looks := drivertest.Open(t, pglock.Open, url(server.Addr))
	r := runHistoryOn(t, looks, job, nil, soak.For(3*time.Second, time.Minute), func(h *historyRun) {
		h.links = links
		h.loseReplies(10)
	})
	v := r.history.Check(t, lease.Model{Mode: lease.Fenced, Linger: traffic.LocksLinger})
	accepted, refused := r.resource.Log.Check(t)
	stuck := r.checkStuck(t)
	report.Row(t, "PostgreSQL: 10 % of replies lost (dropped, reset, black-holed), 32 clients, 8 names",
		"0 illegal histories, 0 names stuck more than 100 ms after their last holder",
		"%s: %s; %s; resource: %d writes, %d stale ones refused; %s", r.took, v, r.lost, accepted, refused, stuck)
}

// checkTurns fails t if a waiter was served out of turn, or if no waiter was seen directly behind
// one of the other engine, or only such waiters.
func (r *historyRun) checkTurns(t *testing.T) (all, mixed, wrong int) {
	t.Helper()
	turns := r.history.Turns(r.lines)
	for _, turn := range turns {
		if kindOf(turn.First.Client) != kindOf(turn.Second.Client) {
			mixed++
		}
		if !turn.InTurn() {
			wrong++
			t.Error(turn)
		}
	}
	if mixed == 0 || mixed == len(turns) {
		t.Errorf("%d of %d neighbours are of different engines, want some of them", mixed, len(turns))
	}
	return len(turns), mixed, wrong
}
