package tally

import (
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Family is a set of counters that are about the same thing.
type Family int

// The families.
const (
	Locks Family = iota
	Once
	Tokens
	Fences
	Requests
	Schedules
)

// Families returns all families.
func Families() []Family { return []Family{Locks, Once, Tokens, Fences, Requests, Schedules} }

// Each calls visit for each counter of the family, and each value of its label.
func (f Family) Each(visit func(c Counter, value string)) {
	for c, info := range counters() {
		if info.Family != f {
			continue
		}
		for _, value := range info.Values {
			visit(Counter(c), value)
		}
	}
}

// A Counter is one thing that is counted. It is an index of Counters.
type Counter int

// The counters. None is for events that are not counted.
const (
	None Counter = iota - 1
	Acquires
	Waits
	HandOvers
	Renewals
	Releases
	Losses
	Breaks
	CleanupFailures
	Outages
	OnceResults
	OneTimeTokens
	PruneFailures
	FenceClaims
	IdempotentRequests
	Runs
)

// A CounterInfo describes a counter.
type CounterInfo struct {
	Name   string // words with underscores between, such as cleanup_failures
	Help   string // one sentence without its full stop
	Unit   string // what is counted, in the singular
	Family Family
	Mode   bool     // it has the mode of the lock as a label
	Label  string   // the name of its other label; empty if it has none
	Values []string // all values of the label; without a label, one empty value
}

// plain is the Values of a counter without a label.
var plain = []string{""}

// Counters describes each Counter, by its index.
func Counters() []CounterInfo {
	return []CounterInfo{
		{"acquires", "Acquires that have ended, with a lease or without, by result", "acquire", Locks, true, "result",
			[]string{"acquired", "held", "in-progress", "ended", "unavailable", "failed"}},
		{"waits", "Acquires that began to wait because another holder was in the way, or the store did not answer", "wait", Locks, false, "", plain},
		{"handovers", "Leases that the previous holder handed over to a waiter", "lease", Locks, false, "", plain},
		{"renewals", "Requests to renew a lease, by outcome", "request", Locks, false, "outcome", []string{"renewed", "failed"}},
		{"releases", "Leases that were released or left, by outcome; unconfirmed if the store has not answered", "lease", Locks, false, "outcome",
			[]string{"released", "unconfirmed", "left"}},
		{"losses", "Leases that ended before they were released, by cause", "lease", Locks, false, "cause",
			[]string{"deadline", "max-hold", "stalled", "broken", "overtaken", "taken"}},
		{"breaks", "Leases that were taken away from their holders", "lease", Locks, false, "", plain},
		{"cleanup_failures", "Abandoned requests that could not be cancelled and leases that could not be released: they end with their TTL", "request", Locks, false, "", plain},
		{"outages", "Outages of the store, each counted by every acquire that waited during it", "outage", Locks, false, "", plain},
		{"once", "Do-once work, by outcome", "call", Once, false, "outcome", []string{"completed", "replayed", "failed"}},
		{"onetime_tokens", "One-time tokens, by what happened to them", "token", Tokens, false, "outcome",
			[]string{"issued", "redeemed", "refused", "revoked", "pruned"}},
		{"prune_failures", "Rounds of pruning of one-time tokens that ended early", "round", Tokens, false, "", plain},
		{"fence_claims", "Claims shown to guarded resources, by outcome; a refusal kept a stale holder from writing", "claim", Fences, false, "outcome",
			[]string{"accepted", "refused"}},
		{"idempotent_requests", "HTTP requests with an idempotency key, by outcome", "request", Requests, false, "outcome",
			[]string{"ran", "replayed", "refused"}},
		{"scheduled_runs", "Runs of schedules, by outcome; missed if a run was due and did not take place", "run", Schedules, false, "outcome",
			[]string{"done", "failed", "missed"}},
	}
}

// A Histogram is a distribution of durations. It is an index of Histograms.
type Histogram int

// The histograms. NoHistogram is for events that are not measured.
const (
	NoHistogram Histogram = iota - 1
	AcquireDuration
	HoldDuration
)

// A HistogramInfo describes a histogram. All are in seconds, with the mode of the lock
// as their label.
type HistogramInfo struct {
	Name    string // without the unit
	Help    string
	Buckets []float64 // upper bounds
}

// Histograms describes each Histogram, by its index.
func Histograms() []HistogramInfo {
	return []HistogramInfo{
		{"acquire_duration", "How long acquires took, with a lease in the end or without",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}},
		{"hold_duration", "How long leases were held, whatever ended them",
			[]float64{.001, .005, .025, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400}},
	}
}

// A GaugeInfo describes a gauge. All have the mode of the lock as their label.
type GaugeInfo struct {
	Name  string
	Help  string
	Unit  string // seconds, or what is counted
	Value func(Standing) float64
}

// Gauges has all gauges.
func Gauges() []GaugeInfo {
	return []GaugeInfo{
		{"waiting", "Acquires that wait at this moment", "acquire", func(s Standing) float64 { return float64(s.Waiting) }},
		{"waiting_in_outage", "Acquires that wait at this moment for a store that does not answer", "acquire", func(s Standing) float64 { return float64(s.InOutage) }},
		{"oldest_wait", "Age of the acquire that has waited longest; 0 if none waits", "seconds", func(s Standing) float64 { return s.OldestWait.Seconds() }},
		{"held", "Leases that are held at this moment", "lease", func(s Standing) float64 { return float64(s.Held) }},
		{"longest_hold", "Age of the lease that has been held longest; 0 if none is held", "seconds", func(s Standing) float64 { return s.LongestHold.Seconds() }},
	}
}

// Modes returns the kinds of all modes of locks.
func Modes() []string {
	return []string{lockinfo.Exclusive.Kind(), lockinfo.Shared.Kind(), lockinfo.Permits(1, 1).Kind()}
}
