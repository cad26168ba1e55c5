package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/internal/testsvc"
	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// The peers on PostgreSQL that goals refer to.
const (
	ownPostgres = "holdfast postgres"
	upserts     = "two upserts" // the least that makes two durable changes
)

// A postgresStore is one PostgreSQL server with fsync on.
type postgresStore struct{ server *testsvc.Database }

func startPostgres(l *life, settings ...string) *postgresStore {
	settings = append([]string{"fsync=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=4GB"}, settings...)
	return &postgresStore{testsvc.Postgres(l, settings...)}
}

func (s *postgresStore) addr() string { return s.server.Addr }
func (s *postgresStore) pid() int     { return s.server.PID() }

// clear does nothing: names are not used twice.
func (s *postgresStore) clear() error { return nil }

// scripts returns zeros: PostgreSQL runs no scripts here.
func (s *postgresStore) scripts() (scripts, error) { return scripts{}, nil }

// cpu returns the time of the server's processes, including those that have ended.
func (s *postgresStore) cpu() (all time.Duration, err error) {
	const tick = time.Second / 100
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		_, rest, ok := strings.Cut(string(text), ") ") // after the program's name
		fields := strings.Fields(rest)
		if err != nil || !ok || len(fields) < 15 {
			continue // it has ended
		}
		pid := filepath.Base(filepath.Dir(name))
		ticks := fields[11:13] // user, system
		switch strconv.Itoa(s.pid()) {
		case pid:
			ticks = fields[11:15] // including its ended children
		case fields[1]:
		default:
			continue
		}
		for _, t := range ticks {
			n, _ := strconv.Atoi(t)
			all += time.Duration(n) * tick
		}
	}
	return all, err
}

// durable returns the workload for PostgreSQL with fsync on.
func durable(name string, w workload) workload {
	w.name, w.title = "durable-"+name, w.title+", on a disk"
	w.base = upserts
	if w.needs == peer.Waits {
		w.needs, w.base = peer.WaitsDurably, ownPostgres
	} else {
		w.needs = peer.TakesDurably
	}
	w.metrics = slices.DeleteFunc(slices.Clone(w.metrics), func(m report.Metric) bool {
		return slices.Contains([]report.Metric{perScript, perCall, perOuter, perInner}, m)
	})
	return w
}

func durables() []workload {
	return []workload{
		durable("1", latency("", "One goroutine", anyCore)),
		durable("16", throughput(16)), durable("64", throughput(64)),
		durable("handoff-32", longer(handOff(32, 0))),
		durable("strict", strict(ages[0])),
	}
}

// longer returns a workload with longer samples, in which each worker has several turns although
// each turn waits for the disk.
func longer(w workload) workload {
	w.least = 8 * time.Second
	return w
}

func durableGoals() []report.Goal {
	all := []report.Goal{
		{Title: "on PostgreSQL, a pair", Workload: "durable-1", Metric: "p50", Against: []string{upserts}, AtMost: 1.15},
		{Title: "the same with history", Workload: "durable-1", Metric: "p50", Peer: ownPostgres + " history", Against: []string{upserts}, AtMost: 1.25},
		// A grant is nevertheless on the disk: see docs/postgres.md.
		{Title: "the same with synchronous_commit=off", Workload: "durable-1", Metric: "p50", Peer: ownPostgres + " async", Against: []string{upserts}, AtMost: 2},
		{Title: "ahead of a row with a lease", Workload: "durable-1", Metric: "p50", Against: []string{"lease row"}, AtMost: 0.5},
		{Title: "on PostgreSQL, 32 goroutines want one name, Jain", Workload: "durable-handoff-32", Metric: "jain", AtLeast: 0.99},
		{Title: "on PostgreSQL, strict two-client hand-off, ms", Workload: "durable-strict", Metric: "p50", AtMost: 1.5},
	}
	for _, n := range []string{"16", "64"} {
		all = append(all, report.Goal{Title: fmt.Sprintf("on PostgreSQL, %s goroutines", n), Workload: "durable-" + n, Metric: "rate", Against: []string{upserts}, AtLeast: 0.8})
	}
	for i := range all {
		if all[i].Peer == "" {
			all[i].Peer = ownPostgres
		}
	}
	return all
}
