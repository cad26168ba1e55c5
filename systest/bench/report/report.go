// Package report writes the results of a run of the benchmark: as tables, as JSON and as
// pictures. It measures nothing, and knows nothing of locks.
//
//	report.go  the type Run: machine, versions, workloads, samples
//	stats.go   median, range, percentile, fairness
//	goals.go   goals, and whether they are met
//	table.go   Markdown
//	json.go    JSON, written and read
//	merge.go   merges runs, and compares two
//	svg.go     pictures, readable without colour, on light and dark pages
package report

// A Run is one call of the benchmark.
type Run struct {
	Date      string            `json:"date"`    // 2006-01-02
	Commit    string            `json:"commit"`  // as git describes it
	Command   string            `json:"command"` // which repeats the run
	Machine   string            `json:"machine"` // processor, kernel
	Cores     int               `json:"cores"`
	Versions  map[string]string `json:"versions"` // of Go, the servers, and the peers' modules
	Hours     []string          `json:"hours"`    // in which it was measured, 2006-01-02T15
	Rounds    int               `json:"rounds"`   // of each hour, interleaved: A B C A B C
	Seconds   float64           `json:"seconds"`  // length of a sample that counts by time
	Verdicts  []Verdict         `json:"verdicts,omitempty"`
	Workloads []Workload        `json:"workloads"`
}

// A Workload has the results of several peers at one workload.
type Workload struct {
	Name    string   `json:"name"`  // a-file-name
	Title   string   `json:"title"` // one line
	Note    string   `json:"note,omitempty"`
	Base    string   `json:"base,omitempty"` // the peer that all are compared with
	Metrics []Metric `json:"metrics"`        // the picture shows the first
	Peers   []Peer   `json:"peers"`
}

// A Metric is one figure of a workload.
type Metric struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Unit   string `json:"unit,omitempty"`
	Better Better `json:"better"`
}

// Better is the direction in which figures improve.
type Better string

const (
	More Better = "more"
	Less Better = "less"
)

// A Peer has the results of one way to lock.
type Peer struct {
	Name     string               `json:"name"`
	Floor    bool                 `json:"floor,omitempty"` // a bound, not meant for use
	Settings string               `json:"settings"`
	Reason   string               `json:"reason,omitempty"`  // why samples are missing
	Samples  map[string][]float64 `json:"samples,omitempty"` // by metric, one a round
	Summary  map[string]Summary   `json:"summary,omitempty"` // of the samples, by Summarize
}

// A Summary summarizes the samples of a metric.
type Summary struct {
	Median   float64 `json:"median"`
	Least    float64 `json:"least"`
	Greatest float64 `json:"greatest"`
	Ratio    float64 `json:"ratio,omitempty"` // of the median to the base's
}

// Summarize fills in the summaries of all peers.
func (r *Run) Summarize() {
	for i := range r.Workloads {
		w := &r.Workloads[i]
		for j := range w.Peers {
			w.Peers[j].Summary = w.summaries(w.Peers[j])
		}
	}
}

func (w *Workload) summaries(p Peer) map[string]Summary {
	all := map[string]Summary{}
	for metric, samples := range p.Samples {
		if len(samples) == 0 {
			continue
		}
		s := Summary{Median: Median(samples)}
		s.Least, s.Greatest = Range(samples)
		if other, ok := w.median(w.Base, metric); ok && other != 0 {
			s.Ratio = s.Median / other
		}
		all[metric] = s
	}
	return all
}

// Median returns the median of the peer's samples of a metric. ok is false if there are none.
func (p *Peer) Median(metric string) (median float64, ok bool) {
	samples := p.Samples[metric]
	return Median(samples), len(samples) > 0
}

// Peer returns the results of a peer, or nil.
func (w *Workload) Peer(name string) *Peer {
	for i := range w.Peers {
		if w.Peers[i].Name == name {
			return &w.Peers[i]
		}
	}
	return nil
}

// Workload returns a workload of the run, or nil.
func (r *Run) Workload(name string) *Workload {
	for i := range r.Workloads {
		if r.Workloads[i].Name == name {
			return &r.Workloads[i]
		}
	}
	return nil
}
