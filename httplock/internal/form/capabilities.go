package form

import (
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Capabilities are the reply to Capable: what the server's engine can do.
type Capabilities struct {
	Shared      bool `json:"shared,omitempty"`
	Semaphore   bool `json:"semaphore,omitempty"`
	Queue       bool `json:"queue,omitempty"`
	Replicas    bool `json:"replicas,omitempty"`
	Break       bool `json:"break,omitempty"`
	Losses      bool `json:"losses,omitempty"`
	AcquireAll  bool `json:"acquire_all,omitempty"`
	Records     bool `json:"records,omitempty"`
	OneTime     bool `json:"onetime,omitempty"`
	List        bool `json:"list,omitempty"`
	ListRecords bool `json:"list_records,omitempty"`
	Routes      bool `json:"routes,omitempty"`
	Diagnose    bool `json:"diagnose,omitempty"`
	History     bool `json:"history,omitempty"`

	MaxTTL    Span `json:"max_ttl_us,omitempty"`
	MaxExtend int  `json:"max_extend,omitempty"`

	SelfPruning bool `json:"self_pruning,omitempty"` // what driver.Vault says
}

// CapabilitiesOf returns the form of what an engine can do.
func CapabilitiesOf(c driver.Capabilities, selfPruning bool) Capabilities {
	return Capabilities{
		Shared: c.Shared, Semaphore: c.Semaphore, Queue: c.Queue, Replicas: c.Replicas, Break: c.Break, Losses: c.Losses,
		AcquireAll: c.AcquireAll, Records: c.Records, OneTime: c.OneTime, List: c.List, ListRecords: c.ListRecords,
		Routes: c.Routes, Diagnose: c.Diagnose, History: c.History, MaxTTL: SpanOf(c.MaxTTL), MaxExtend: c.MaxExtend, SelfPruning: selfPruning,
	}
}

// Driver returns what the form is of.
func (c Capabilities) Driver() driver.Capabilities {
	return driver.Capabilities{
		Shared: c.Shared, Semaphore: c.Semaphore, Queue: c.Queue, Replicas: c.Replicas, Break: c.Break, Losses: c.Losses,
		AcquireAll: c.AcquireAll, Records: c.Records, OneTime: c.OneTime, List: c.List, ListRecords: c.ListRecords,
		Routes: c.Routes, Diagnose: c.Diagnose, History: c.History, MaxTTL: c.MaxTTL.Duration(), MaxExtend: c.MaxExtend,
	}
}

// A DiagnoseRequest is the request of Diagnose.
type DiagnoseRequest struct {
	TTL Span `json:"ttl_us"`
}

// A Diagnosis is the reply to Diagnose.
type Diagnosis struct {
	Findings []Finding `json:"findings"`
}

// A Finding is the result of one check.
type Finding struct {
	Level    Level            `json:"level"`
	Key      string           `json:"key"`
	Server   string           `json:"server,omitempty"`
	Text     string           `json:"text"`
	Error    *Error           `json:"error,omitempty"`
	Measures map[string]int64 `json:"measures_ns,omitempty"`
	Counts   map[string]int64 `json:"counts,omitempty"`
}

// DiagnosisOf returns the form of what was found.
func DiagnosisOf(d driver.Diagnosis) Diagnosis {
	f := Diagnosis{Findings: make([]Finding, len(d.Findings))}
	for i, found := range d.Findings {
		measures := make(map[string]int64, len(found.Measures))
		for name, d := range found.Measures {
			measures[name] = d.Nanoseconds()
		}
		f.Findings[i] = Finding{
			Level: Level(found.Level), Key: found.Key, Server: found.Server, Text: found.Text, Error: ErrorOf(found.Err),
			Measures: measures, Counts: found.Counts,
		}
	}
	return f
}

// Driver returns what the form is of.
func (d Diagnosis) Driver() driver.Diagnosis {
	var all driver.Diagnosis
	for _, f := range d.Findings {
		measures := make(map[string]time.Duration, len(f.Measures))
		for name, ns := range f.Measures {
			measures[name] = time.Duration(ns)
		}
		all.Findings = append(all.Findings, driver.Finding{
			Level: driver.Level(f.Level), Key: f.Key, Server: f.Server, Text: f.Text, Err: f.Error.Err(),
			Measures: measures, Counts: f.Counts,
		})
	}
	return all
}
