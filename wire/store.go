package wire

import "github.com/holdfast-locks/holdfast/driver"

// A Store is a server's store and its state.
type Store struct {
	Store    string   `json:"store"` // its URL without credentials, or the kind of its engine
	Features Features `json:"features"`
	History  bool     `json:"history"` // it has a history

	Answers     bool     `json:"answers"`          // it has answered the server's last request
	SinceMS     *int64   `json:"since_ms"`         // for how long Answers has been as it is; null: the server does not know
	RoundTripMS *float64 `json:"round_trip_ms"`    // the time of that request; null if it was not answered
	Reason      string   `json:"reason,omitempty"` // why it was not answered

	Diagnosis    *Diagnosis `json:"diagnosis"`             // the latest, or null
	CheckedAgoMS *int64     `json:"checked_ago_ms"`        // how long ago Diagnosis was made, or null
	Undiagnosed  string     `json:"undiagnosed,omitempty"` // why there is no diagnosis, or no newer one
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
