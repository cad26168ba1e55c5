package report

import (
	"fmt"
	"io"
	"slices"
)

// Hours is the number of different hours in which a goal must be measured before it counts as
// met: on a shared machine, one hour may be a fast one.
const Hours = 3

// Add adds the samples of another run of the same commit on the same machine.
func (r *Run) Add(other *Run) error {
	if r.Commit != other.Commit || r.Machine != other.Machine || r.Seconds != other.Seconds {
		return fmt.Errorf("there is a run of %s on %s with samples of %s s already: choose another directory",
			r.Commit, r.Machine, Figure(r.Seconds))
	}
	for _, hour := range other.Hours {
		if !slices.Contains(r.Hours, hour) {
			r.Hours = append(r.Hours, hour)
		}
	}
	for _, w := range other.Workloads {
		into := r.Workload(w.Name)
		if into == nil {
			r.Workloads = append(r.Workloads, w)
			continue
		}
		for _, p := range w.Peers {
			into.add(p)
		}
	}
	return nil
}

func (w *Workload) add(p Peer) {
	into := w.Peer(p.Name)
	if into == nil {
		w.Peers = append(w.Peers, p)
		return
	}
	into.Reason = p.Reason
	for metric, samples := range p.Samples {
		into.Samples[metric] = append(into.Samples[metric], samples...)
	}
}

// Compare writes the ratios of a peer's medians in two runs, the later to the earlier. The rounds
// of the runs alternated.
func Compare(to io.Writer, before, after *Run, peer string) error {
	if _, err := fmt.Fprintf(to, "| %s, %s ÷ %s | metric | before | after | ratio |\n|---|---|---:|---:|---:|\n", peer, after.Commit, before.Commit); err != nil {
		return err
	}
	for i := range after.Workloads {
		w := &after.Workloads[i]
		other := before.Workload(w.Name)
		if other == nil {
			continue
		}
		for _, m := range w.Metrics {
			is, ok := w.median(peer, m.Name)
			was, both := other.median(peer, m.Name)
			if !ok || !both || was == 0 {
				continue
			}
			if _, err := fmt.Fprintf(to, "| %s | %s | %s | %s | %.3f |\n", w.Name, heading(m), Figure(was), Figure(is), is/was); err != nil {
				return err
			}
		}
	}
	return nil
}
