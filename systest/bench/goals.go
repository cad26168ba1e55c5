package main

import "github.com/holdfast-locks/holdfast/systest/bench/report"

// The peers that all are compared with, and that goals are measured against.
const (
	own    = "holdfast"
	floor  = "fence rueidis" // the same client, and the least that has a token
	relay  = "baton"
	keeper = "batches of 500"
)

// goals returns what holdfast shall reach.
func goals() []report.Goal {
	all := []report.Goal{
		{Workload: "latency-shared", Metric: "p50", Against: floor, AtMost: 1.8},
		{Workload: "latency-split", Metric: "p50", Against: floor, AtMost: 1.15},
		{Workload: "latency", Metric: "server", Against: floor, AtMost: 2},
		{Workload: "latency", Metric: "allocs", AtMost: 25},
		{Workload: "latency", Metric: "commands", AtMost: 2.05},
		{Workload: "throughput-64", Metric: "rate", Against: floor, AtLeast: 0.75},
		{Workload: "throughput-512", Metric: "rate", Against: floor, AtLeast: 0.75},
		{Workload: "handoff-32-0ms", Metric: "server", Against: relay, AtMost: 2},
		{Workload: "handoff-32-0ms", Metric: "commands", AtMost: 2.1},
		{Workload: "strict", Metric: "p50", Against: relay, AtMost: 1.6},
		{Workload: "held-10000", Metric: "rate", AtMost: 13},
		{Workload: "held-10000", Metric: "client", AtMost: 0.8},
		{Workload: "held-10000", Metric: "memory", AtMost: 0.8},
		{Workload: "held-100000", Metric: "client", AtMost: 3},
		{Workload: "held-100000", Metric: "longest", AtMost: 1},
		{Workload: "beside-10000", Metric: "server", Against: own, In: "beside-0", AtMost: 1.05},
		{Workload: "beside-100000", Metric: "server", Against: own, In: "beside-0", AtMost: 1.05},
		{Workload: "recovery", Metric: "past", AtMost: 5},
		{Workload: "recovery-200000", Metric: "past", AtMost: 5},
	}
	for _, c := range contended {
		load, metric := c[0], c[1]
		all = append(all,
			report.Goal{Workload: load + "-0ms", Metric: metric, Against: relay, AtLeast: 0.65},
			report.Goal{Workload: load + "-1ms", Metric: metric, Against: relay, AtLeast: 0.88},
			report.Goal{Workload: load + "-20ms", Metric: metric, Against: relay, AtLeast: 0.97})
	}
	for i := range all {
		all[i].Peer = own
	}
	return append(all, aheadOfLibraries()...)
}

// libraries are the peers that holdfast shall be ahead of.
var libraries = []string{"redsync rueidis", "redsync go-redis", "rueidislock", "bsm/redislock", "etcd"}

// contended are the hand-offs, and how each is counted.
var contended = [][2]string{{"handoff-32", "rate"}, {"handoff-8x4", "turns"}}

// aheadOfLibraries returns the goals that say so.
func aheadOfLibraries() (all []report.Goal) {
	for _, library := range libraries {
		for _, load := range []string{"throughput-64", "throughput-512"} {
			all = append(all, report.Goal{Workload: load, Metric: "rate", Peer: own, Against: library, AtLeast: 1})
		}
		for _, c := range contended {
			load, metric := c[0], c[1]
			for _, work := range []string{"-0ms", "-1ms", "-20ms"} {
				all = append(all, report.Goal{Workload: load + work, Metric: metric, Peer: own, Against: library, AtLeast: 1})
			}
		}
		all = append(all, report.Goal{Workload: "strict", Metric: "p50", Peer: own, Against: library, AtMost: 1})
	}
	return all
}
