package main

import (
	"fmt"
	"slices"

	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// The peers that others are compared with, and that goals refer to.
const (
	own     = "holdfast"
	floor   = "fence rueidis" // the least that a lock with a token does, on the same client
	ownGo   = "holdfast go-redis"
	floorGo = "fence go-redis" // the same on go-redis
	relay   = "baton"
	keeper  = "batches of 500"
)

// libraries are the peers that holdfast must be ahead of.
var libraries = []string{
	"redsync go-redis", "redsync go-redis default", "redsync rueidis", "redsync rueidis default",
	"rueidislock", "rueidislock default", "bsm/redislock", "bsm/redislock default", "etcd", "etcd default",
}

// goals returns the goals of holdfast.
func goals() []report.Goal {
	all := slices.Concat(throughputGoals(), latencyGoals(), handOffGoals(), serverGoals(), heldGoals(), durableGoals(), []report.Goal{
		{Title: "take-over past the expiry, ms", Workload: "recovery", Metric: "past", AtMost: 5},
		{Title: "the same beside 200,000 keys, ms", Workload: "recovery-200000", Metric: "past", AtMost: 5},
		{Title: "loss by DEL known, with the next renewal, ms", Workload: "loss", Metric: "known", AtMost: lossTTL.Seconds() * 1000 / 3},
		{Title: "loss by DEL known, told, ms", Workload: "loss", Metric: "known", Peer: "holdfast told", AtMost: 5},
		{Title: "server CPU of a pair beside 10,000 other locks, growth", Workload: "beside", Metric: growthBeside(10_000), AtMost: 1.05},
		{Title: "server CPU of a pair beside 100,000 other locks, growth", Workload: "beside", Metric: growthBeside(100_000), AtMost: 1.05},
	})
	for i := range all {
		if all[i].Peer == "" {
			all[i].Peer = own
		}
	}
	return all
}

func throughputGoals() (all []report.Goal) {
	for _, load := range []struct {
		goroutines    int
		atLeast, onGo float64
	}{{1, .85, .8}, {4, .85, .8}, {16, .75, .75}, {64, .85, .75}, {512, .9, .75}} {
		title, name := fmt.Sprintf("throughput, %d goroutines", load.goroutines), fmt.Sprintf("throughput-%d", load.goroutines)
		all = append(all,
			report.Goal{Title: title, Workload: name, Metric: "rate", Against: []string{floor}, AtLeast: load.atLeast},
			report.Goal{Title: title + ", on go-redis", Workload: name, Metric: "rate", Peer: ownGo, Against: []string{floorGo}, AtLeast: load.onGo},
			report.Goal{Title: title + ", ahead of every library", Workload: name, Metric: "rate", Against: libraries, AtLeast: 1})
	}
	return all
}

func latencyGoals() []report.Goal {
	return []report.Goal{
		{Title: "uncontended, shared core", Workload: "latency-shared", Metric: "p50", Against: []string{floor}, AtMost: 1.4},
		{Title: "uncontended, split cores", Workload: "latency-split", Metric: "p50", Against: []string{floor}, AtMost: 1.15},
		{Title: "allocations of a pair", Workload: "latency-split", Metric: "allocs", AtMost: 25.5},
		{Title: "commands of a pair", Workload: "latency-split", Metric: "commands", AtMost: 2.02},
		{Title: "commands of a pair, on go-redis", Workload: "latency-split", Metric: "commands", Peer: ownGo, AtMost: 2.02},
	}
}

// handOffGoals returns the goals of the hand-offs with each work, and of the strict one.
func handOffGoals() []report.Goal {
	all := []report.Goal{
		{Title: "strict two-client hand-off", Workload: "strict-5ms", Metric: "p50", Against: []string{relay}, AtMost: 1.5},
		{Title: "strict two-client hand-off, ahead of every library", Workload: "strict-5ms", Metric: "p50", Against: libraries, AtMost: 1},
	}
	for _, load := range []struct {
		name    string
		atLeast float64
	}{{"handoff-32-0ms", 2}, {"handoff-8x4-0ms", 1}} {
		name, atLeast := load.name, load.atLeast
		all = append(all,
			report.Goal{Title: name + ", cohorts", Workload: name, Metric: "rate", Peer: "holdfast cohort", Against: []string{relay}, AtLeast: atLeast},
			report.Goal{Title: name + ", cohorts, Jain", Workload: name, Metric: "jain", Peer: "holdfast cohort", AtLeast: .99})
	}
	for _, load := range []struct {
		name    string // with %s for the work
		atLeast [3]float64
	}{
		{"handoff-32-%s-split", [3]float64{.75, .9, .97}},
		{"handoff-32-%s", [3]float64{.5, .85, .95}},
		{"handoff-8x4-%s", [3]float64{.65, .88, .97}},
	} {
		for i, work := range []string{"0ms", "1ms", "20ms"} {
			name, atLeast := fmt.Sprintf(load.name, work), load.atLeast[i]
			all = append(all,
				report.Goal{Title: name, Workload: name, Metric: "rate", Against: []string{relay}, AtLeast: atLeast},
				report.Goal{Title: name + ", ahead of every library", Workload: name, Metric: "rate", Against: libraries, AtLeast: 1},
				report.Goal{Title: name + ", Jain", Workload: name, Metric: "jain", Against: []string{relay}, AtLeast: 0.98},
				report.Goal{Title: name + ", commands", Workload: name, Metric: "commands", AtMost: 2.1})
		}
	}
	return all
}

func serverGoals() []report.Goal {
	return []report.Goal{
		{Title: "server CPU of a pair", Workload: "latency-split", Metric: "server", Against: []string{floor}, AtMost: 2},
		{Title: "server CPU of a pair in groups, 64 goroutines", Workload: "throughput-64", Metric: "server", Against: []string{floor}, AtMost: 1.3},
		{Title: "server CPU of a hand-over", Workload: "handoff-32-0ms", Metric: "server", Against: []string{relay}, AtMost: 1.6},
	}
}

func heldGoals() []report.Goal {
	return []report.Goal{
		{Title: "renewals of 10,000 leases, server CPU", Workload: "held-10000", Metric: "server", Against: []string{keeper}, AtMost: 1.6},
		{Title: "renewals of 100,000 leases, server CPU", Workload: "held-100000", Metric: "server", Against: []string{keeper}, AtMost: 1.6},
		{Title: "10,000 leases, TTL 10 s: commands a second", Workload: "held-10000", Metric: "rate", AtMost: 13},
		{Title: "10,000 leases, TTL 10 s: client, % of a core", Workload: "held-10000", Metric: "client", AtMost: 0.8},
		{Title: "10,000 leases, TTL 10 s: kB a lease", Workload: "held-10000", Metric: "memory", AtMost: 0.8},
		{Title: "100,000 leases, TTL 30 s: client, % of a core", Workload: "held-100000", Metric: "client", AtMost: 3},
		{Title: "100,000 leases, TTL 30 s: longest script, ms", Workload: "held-100000", Metric: "longest", AtMost: 1},
	}
}
