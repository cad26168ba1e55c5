package report

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
)

// WriteJSON writes the run with all its samples, one line for each named value. Figures have five
// significant digits.
func (r *Run) WriteJSON(w io.Writer) error {
	for i := range r.Workloads {
		for _, p := range r.Workloads[i].Peers {
			p.round()
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// Within a string the quotes would be escaped.
	text = bytes.ReplaceAll(text, []byte(`{"name":`), []byte("\n"+`{"name":`))
	_, err = w.Write(append(text, '\n'))
	return err
}

// ReadJSON reads the output of WriteJSON, so that a report can be drawn again.
func ReadJSON(from io.Reader) (*Run, error) {
	r := new(Run)
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	return r, d.Decode(r)
}

// round rounds all samples and summaries.
func (p *Peer) round() {
	for _, samples := range p.Samples {
		for i, v := range samples {
			samples[i] = rounded(v)
		}
	}
	for metric, s := range p.Summary {
		p.Summary[metric] = Summary{rounded(s.Median), rounded(s.Least), rounded(s.Greatest), rounded(s.Ratio)}
	}
}

// rounded returns a figure with five significant digits.
func rounded(v float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
	if err != nil {
		return v
	}
	return short
}
