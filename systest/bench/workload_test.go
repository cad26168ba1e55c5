package main

import (
	"regexp"
	"slices"
	"testing"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// TestNames: what is chosen and linked by its name has one of its own.
func TestNames(t *testing.T) {
	seen, plain := map[string]bool{}, regexp.MustCompile(`^[a-z0-9-]+$`)
	for _, w := range workloads() {
		if seen[w.name] || !plain.MatchString(w.name) || w.title == "" || len(w.metrics) == 0 {
			t.Errorf("the workload %q, %q, has %d metrics", w.name, w.title, len(w.metrics))
		}
		if p, ok := peer.Named(w.base); w.base != "" && (!ok || p.Can&w.needs != w.needs) {
			t.Errorf("%s: %q cannot do it", w.name, w.base)
		}
		seen[w.name] = true
	}
	for _, p := range peer.All() {
		if seen[p.Name] || p.Settings == "" || p.Can == 0 || p.Open == nil {
			t.Errorf("the peer %+v", p)
		}
		seen[p.Name] = true
	}
}

// TestGoalsCanBeMeasured: each names a workload that there is, a metric of it,
// and peers that can do it.
func TestGoalsCanBeMeasured(t *testing.T) {
	loads := map[string]workload{}
	for _, w := range workloads() {
		loads[w.name] = w
	}
	for _, g := range goals() {
		w, ok := loads[g.Workload]
		if !ok || !slices.ContainsFunc(w.metrics, func(m report.Metric) bool { return m.Name == g.Metric }) {
			t.Errorf("no workload measures %+v", g)
		}
		for _, name := range []string{g.Peer, g.Against} {
			if p, ok := peer.Named(name); name != "" && (!ok || p.Can&w.needs != w.needs) {
				t.Errorf("%s cannot do %s", name, w.name)
			}
		}
		if (g.AtLeast > 0) == (g.AtMost > 0) {
			t.Errorf("%+v has not exactly one bound", g)
		}
	}
}
