package wire

import "github.com/holdfast-locks/holdfast/driver"

// A Store is what a server has for a store, and how that does.
type Store struct {
	Store    string   `json:"store"` // its URL without credentials, or which engine it is
	Features Features `json:"features"`
	History  bool     `json:"history"` // it writes down what happens

	Answers     bool     `json:"answers"`          // it did so when it was asked last
	SinceMS     *int64   `json:"since_ms"`         // how long ago the server first found it so, with no other finding since; null: it does not know
	RoundTripMS *float64 `json:"round_trip_ms"`    // of that; null if there was no answer
	Reason      string   `json:"reason,omitempty"` // why there was none

	Diagnosis    *Diagnosis `json:"diagnosis"`             // null: there is none
	CheckedAgoMS *int64     `json:"checked_ago_ms"`        // when it was made; null if there is none
	Undiagnosed  string     `json:"undiagnosed,omitempty"` // why there is none, or no newer one
}

// Features are what a store can do.
type Features struct {
	Shared     bool `json:"shared"`
	Semaphore  bool `json:"semaphore"`
	Queue      bool `json:"queue"`
	Replicas   bool `json:"replicas"`
	Break      bool `json:"break"`
	Losses     bool `json:"losses"`
	AcquireAll bool `json:"acquire_all"`
	Records    bool `json:"records"`
	OneTime    bool `json:"onetime"`
	List       bool `json:"list"`
	Diagnose   bool `json:"diagnose"`
	History    bool `json:"history"`
}

// FeaturesOf returns what an engine can do.
func FeaturesOf(c driver.Capabilities) Features {
	return Features{
		Shared: c.Shared, Semaphore: c.Semaphore, Queue: c.Queue, Replicas: c.Replicas, Break: c.Break, Losses: c.Losses,
		AcquireAll: c.AcquireAll, Records: c.Records, OneTime: c.OneTime, List: c.List,
		Diagnose: c.Diagnose, History: c.History,
	}
}
