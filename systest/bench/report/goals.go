package report

import (
	"cmp"
	"fmt"
)

// A Goal bounds a figure of a peer, either alone or relative to another peer in the same
// run.
type Goal struct {
	Title    string   `json:"title"` // its subject
	Workload string   `json:"workload"`
	Metric   string   `json:"metric"`
	Peer     string   `json:"peer"`              // the peer whose figure is bounded
	Against  []string `json:"against,omitempty"` // the best of these peers; with none, the figure itself is bounded
	AtLeast  float64  `json:"at_least,omitempty"`
	AtMost   float64  `json:"at_most,omitempty"`
}

// A Verdict is the result of a goal.
type Verdict struct {
	Goal
	Best     string  `json:"best,omitempty"`  // the best peer of Against
	Figure   float64 `json:"figure"`          // or ratio of medians
	Least    float64 `json:"least"`           // of all rounds
	Greatest float64 `json:"greatest"`        //
	Hours    int     `json:"hours"`           // number of hours in which it was measured
	Measured bool    `json:"measured"`        // all needed figures were measured
	Met      bool    `json:"met"`             //
	Short    float64 `json:"short,omitempty"` // factor by which it was missed
}

// Judge returns the verdicts on the goals whose workloads are in the run.
func (r *Run) Judge(goals []Goal) (verdicts []Verdict) {
	for _, g := range goals {
		if w := r.Workload(g.Workload); w != nil {
			v := w.judge(g)
			v.Hours = len(r.Hours)
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

func (w *Workload) judge(g Goal) Verdict {
	v := Verdict{Goal: g}
	own, ok := w.median(g.Peer, g.Metric)
	if !ok {
		return v
	}
	v.Figure, v.Measured = own, true
	v.Least, v.Greatest = Range(w.Peer(g.Peer).Samples[g.Metric])
	if len(g.Against) > 0 {
		var other float64
		v.Best, other = w.best(g.Against, g.Metric)
		if v.Measured = other > 0; !v.Measured {
			v.Figure = 0
			return v
		}
		v.Figure = own / other
		v.Least, v.Greatest = Range(w.ratios(g.Peer, v.Best, g.Metric))
	}
	if g.AtLeast > 0 {
		v.Short = g.AtLeast / v.Figure
	} else {
		v.Short = v.Figure / g.AtMost
	}
	if v.Met = v.Short <= 1; v.Met {
		v.Short = 0
	}
	return v
}

// ratios returns the ratio of a metric of two peers in each round.
func (w *Workload) ratios(peer, other, metric string) (all []float64) {
	own, against := w.Peer(peer).Samples[metric], w.Peer(other).Samples[metric]
	for i := range min(len(own), len(against)) {
		all = append(all, own[i]/against[i])
	}
	return all
}

// best returns the peer with the best median, and that median.
func (w *Workload) best(peers []string, metric string) (best string, median float64) {
	for _, p := range peers {
		v, ok := w.median(p, metric)
		if ok && (best == "" || (w.metric(metric).Better == More) == (v > median)) {
			best, median = p, v
		}
	}
	return best, median
}

func (w *Workload) metric(name string) (m Metric) {
	for _, m := range w.Metrics {
		if m.Name == name {
			return m
		}
	}
	return m
}

func (w *Workload) median(peer, metric string) (float64, bool) {
	p := w.Peer(peer)
	if p == nil {
		return 0, false
	}
	return p.Median(metric)
}

// Bound returns the goal in words: "≥ 0.75 × baton".
func (v Verdict) Bound() string {
	sign, bound := "≤", v.AtMost
	if v.AtLeast > 0 {
		sign, bound = "≥", v.AtLeast
	}
	if len(v.Against) == 0 {
		return fmt.Sprintf("%s %s", sign, Figure(bound))
	}
	return fmt.Sprintf("%s %s × %s", sign, Figure(bound), cmp.Or(v.Best, v.Against[0]))
}

// Outcome returns the verdict in words.
func (v Verdict) Outcome() string {
	switch {
	case !v.Measured:
		return "not measured"
	case v.Met && v.Hours < Hours:
		return fmt.Sprintf("met so far, in %d of %d hours", v.Hours, Hours)
	case v.Met:
		return "met"
	case v.Short < 1.1:
		return fmt.Sprintf("**short by %s %%**", Figure(100*(v.Short-1)))
	default:
		return fmt.Sprintf("**short by %s ×**", Figure(v.Short))
	}
}
