package wire

import (
	"maps"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Diagnosis is whether a store is fit for locks.
type Diagnosis struct {
	Store    string    `json:"store"` // its URL without credentials
	TTLMS    int64     `json:"ttl_ms"`
	Level    string    `json:"level"` // the worst
	Findings []Finding `json:"findings"`
}

// A Finding is the result of one check.
type Finding struct {
	Key      string             `json:"key"`
	Level    string             `json:"level"`
	Server   string             `json:"server"` // empty for the store as a whole
	Text     string             `json:"text"`
	Measures map[string]float64 `json:"measures"` // by names that end in _ms
	Counts   map[string]int64   `json:"counts"`
}

// DiagnosisOf returns the diagnosis of a store. store is its URL without credentials.
func DiagnosisOf(d driver.Diagnosis, store string, ttl time.Duration) Diagnosis {
	v := Diagnosis{Store: store, TTLMS: ttl.Milliseconds(), Level: d.Worst().String(), Findings: make([]Finding, len(d.Findings))}
	for i, f := range d.Findings {
		v.Findings[i] = Finding{
			Key: f.Key, Level: f.Level.String(), Server: f.Server, Text: f.Text,
			Measures: map[string]float64{}, Counts: map[string]int64{},
		}
		for name, d := range f.Measures {
			v.Findings[i].Measures[name+"_ms"] = float64(d.Nanoseconds()) / 1e6
		}
		maps.Copy(v.Findings[i].Counts, f.Counts)
	}
	return v
}
