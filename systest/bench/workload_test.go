package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/systest/bench/peer"
	"github.com/holdfast-locks/holdfast/systest/bench/report"
)

// TestNames checks that every workload and every peer has a unique name.
func TestNames(t *testing.T) {
	seen, plain := map[string]bool{}, regexp.MustCompile(`^[a-z0-9-]+$`)
	for _, w := range workloads() {
		if seen[w.name] || !plain.MatchString(w.name) || w.title == "" || len(w.metrics) == 0 {
			t.Errorf("the workload %q, %q, has %d metrics", w.name, w.title, len(w.metrics))
		}
		if !canDo(w, w.base) {
			t.Errorf("%s: %q cannot do it", w.name, w.base)
		}
		if (w.run == nil) == (w.begin == nil) {
			t.Errorf("%s has not exactly one of run and begin", w.name)
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

// TestGoalsCanBeMeasured checks that each goal names an existing workload, one of its metrics, and
// peers that can run the workload.
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
		for _, name := range append(g.Against, g.Peer) {
			if !canDo(w, name) {
				t.Errorf("%s: %s cannot do %s", g.Title, name, w.name)
			}
		}
		if g.Title == "" || (g.AtLeast > 0) == (g.AtMost > 0) {
			t.Errorf("%+v has no title, or not exactly one bound", g)
		}
	}
}

// canDo reports whether a peer of that name exists and can run the workload.
func canDo(w workload, name string) bool {
	return slices.ContainsFunc(peer.All(), func(p peer.Peer) bool { return p.Name == name && p.Can&w.needs == w.needs })
}

// TestLibrariesAreAll checks that libraries has exactly the peers that are neither floors nor
// holdfast.
func TestLibrariesAreAll(t *testing.T) {
	for _, p := range peer.All() {
		if own := strings.HasPrefix(p.Name, own); slices.Contains(libraries, p.Name) == (own || p.Floor) {
			t.Errorf("%s is among the libraries: %t", p.Name, own || p.Floor)
		}
	}
}

// TestCommand checks that the command in the report repeats the run, and contains no path of this
// machine.
func TestCommand(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-out", "/home/somebody/results", "-commit", "abc"}, "make bench"},
		{[]string{"-quick", "-only", "handoff|strict"}, `make bench BENCH='-only "handoff|strict" -quick'`},
		{[]string{"-for", "1s", "-rounds", "9"}, `make bench BENCH='-for 1s -rounds 9'`},
		{[]string{"-peers", "holdfast$"}, `make bench BENCH='-peers "holdfast$$"'`},
	} {
		if got, err := parse(c.args); err != nil || got.command != c.want {
			t.Errorf("%q: got %+v, %v, want %s", c.args, got, err, c.want)
		}
	}
}

// TestQuick checks that -quick makes a run short, and that other flags override it.
func TestQuick(t *testing.T) {
	c, err := parse([]string{"-quick"})
	if err != nil || c.rounds != quickRounds || c.length != quickLength {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := parse([]string{"-quick", "-rounds", "9", "-for", "3s"}); err != nil || c.rounds != 9 || c.length != 3*time.Second {
		t.Errorf("got %+v, %v", c, err)
	}
	for _, w := range workloads() {
		if c.takes(w) == w.slow {
			t.Errorf("%s is in the quick form: %t", w.name, c.takes(w))
		}
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-for", "-1s"}, {"-only", "("}, {"-peers", "("}, {"more"}, {"-draw"}} {
		if c, err := parse(args); err == nil {
			t.Errorf("%q: got %+v", args, c)
		}
	}
}

// TestReport checks that the report of an earlier run is written again, with the explanations in
// why.md.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	short := report.Workload{Name: "latency-split", Title: "One", Metrics: []report.Metric{{Name: "allocs"}}, Peers: []report.Peer{
		{Name: own, Samples: map[string][]float64{"allocs": {51}}},
	}}
	c := &config{out: dir}
	if err := c.write(&report.Run{Workloads: []report.Workload{short}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dataFile, pageFile, "latency-split.svg"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, whyFile), []byte("It is proud."), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.redraw(); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, pageFile))
	if err != nil || !strings.Contains(string(page), "It is proud.") || !strings.Contains(string(page), "**short by 2 ×**") {
		t.Errorf("got %v\n%s", err, page)
	}
	var b strings.Builder
	askWhy(&b, (&report.Run{Workloads: []report.Workload{short}}).Judge(goals()), dir)
	if want := "- **allocations of a pair**: 51, goal ≤ 25.5: ...\n"; !strings.Contains(b.String(), want) {
		t.Errorf("there is no %q in\n%s", want, b.String())
	}
}
