package report

import (
	"encoding/json"
	"io"
)

// WriteJSON writes the run with all its samples.
func (r *Run) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// ReadJSON reads what WriteJSON wrote, so that a run can be drawn again.
func ReadJSON(from io.Reader) (*Run, error) {
	r := new(Run)
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	return r, d.Decode(r)
}
