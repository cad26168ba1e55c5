package report

import (
	"cmp"
	"fmt"
)

// A Goal bounds a figure of holdfast: by itself, or by that of another peer in
// the same run.
type Goal struct {
	Workload, Metric string
	Peer             string // whose figure it is
	Against          string // a peer; with none, the figure itself is bounded
	In               string // the workload of Against, if it is another
	AtLeast, AtMost  float64
}

// A Verdict says whether a goal was met.
type Verdict struct {
	Goal
	Figure   float64 // or ratio
	Measured bool    // both were
	Met      bool
}

// Judge returns the verdicts of a run. A ratio is one of medians.
func (r *Run) Judge(goals []Goal) []Verdict {
	verdicts := make([]Verdict, len(goals))
	for i, g := range goals {
		v := Verdict{Goal: g}
		if v.Figure, v.Measured = r.figure(g); v.Measured {
			v.Met = (g.AtLeast == 0 || v.Figure >= g.AtLeast) && (g.AtMost == 0 || v.Figure <= g.AtMost)
		}
		verdicts[i] = v
	}
	return verdicts
}

// figure returns what the goal bounds.
func (r *Run) figure(g Goal) (float64, bool) {
	w := r.Workload(g.Workload)
	if w == nil {
		return 0, false
	}
	own, ok := w.median(g.Peer, g.Metric)
	if !ok || g.Against == "" {
		return own, ok
	}
	if w = r.Workload(cmp.Or(g.In, g.Workload)); w == nil {
		return 0, false
	}
	other, ok := w.median(g.Against, g.Metric)
	return own / other, ok && other > 0
}

func (w *Workload) median(peer, metric string) (float64, bool) {
	p := w.Peer(peer)
	if p == nil {
		return 0, false
	}
	return p.Median(metric)
}

// Bound returns the goal in words: "≥ 0.75 × baton".
func (g Goal) Bound() string {
	sign, bound := "≤", g.AtMost
	if g.AtLeast > 0 {
		sign, bound = "≥", g.AtLeast
	}
	if g.Against == "" {
		return fmt.Sprintf("%s %s", sign, Figure(bound))
	}
	text := fmt.Sprintf("%s %s × %s", sign, Figure(bound), g.Against)
	if g.In != "" {
		text += " in " + g.In
	}
	return text
}
