package tally_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/internal/tally"
)

// rows returns the rows that the table of metrics in docs/metrics.md must have.
func rows() (all []string) {
	row := func(prometheus, otel, kind, unit string, help string, labels ...string) {
		of := []string{"`name`"}
		for _, label := range labels {
			if label != "" {
				of = append(of, "`"+label+"`")
			}
		}
		all = append(all, fmt.Sprintf("| `%s` | `%s` | %s, %s | %s | %s |", prometheus, otel, kind, unit, strings.Join(of, ", "), help))
	}
	for _, c := range tally.Counters() {
		mode, label := "", c.Label
		if c.Mode {
			mode = "mode"
		}
		if label != "" {
			label += "`: `" + strings.Join(c.Values, "`, `")
		}
		row("holdfast_"+c.Name+"_total", "holdfast."+c.Name, "counter", c.Unit, c.Help, mode, label)
	}
	for _, h := range tally.Histograms() {
		row("holdfast_"+h.Name+"_seconds", "holdfast."+strings.ReplaceAll(h.Name, "_", "."), "histogram", "s", h.Help, "mode")
	}
	for _, g := range tally.Gauges() {
		if g.Unit == "seconds" {
			row("holdfast_"+g.Name+"_seconds", "holdfast."+g.Name, "gauge", "s", g.Help, "mode")
			continue
		}
		row("holdfast_"+g.Name, "holdfast."+g.Name, "gauge", g.Unit, g.Help, "mode")
	}
	return all
}

// TestPage checks that docs/metrics.md contains every metric, with its type, unit and labels.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(rows(), "\n")
	if !strings.Contains(string(page), "\n"+want+"\n\n") {
		t.Errorf("docs/metrics.md has not these rows, and no other:\n%s", want)
	}
}
