package form

import "github.com/holdfast-locks/holdfast/driver"

// A Past is the reply to History.
type Past struct {
	Events []Event `json:"events"`
}

// An Event is one that the store has written down, and a line of Events. A line with the
// kind "gap" says that events may have been missed; the first line of a stream is one.
type Event struct {
	ID      string           `json:"id,omitempty"`
	Kind    driver.EventKind `json:"kind"`
	Name    string           `json:"name,omitempty"`
	Ago     Span             `json:"ago_us,omitempty"`
	Mode    driver.Mode      `json:"mode,omitzero"`
	Limit   int              `json:"limit,omitempty"`
	Permits int              `json:"permits,omitempty"`
	Token   uint64           `json:"token,omitempty"`
	Holder  driver.Holder    `json:"holder,omitzero"`
	Waited  Span             `json:"waited_us,omitempty"`
	Held    Span             `json:"held_us,omitempty"`
	Author  string           `json:"author,omitempty"`
	Reason  string           `json:"reason,omitempty"`

	Ping bool `json:"ping,omitempty"` // of Events: that the server is there, and nothing else
}

// EventOf returns the form of an event.
func EventOf(e driver.Event) Event {
	return Event{
		ID: e.ID, Kind: e.Kind, Name: e.Name, Ago: SpanOf(e.Ago), Mode: e.Mode, Limit: e.Limit, Permits: e.Permits, Token: e.Token,
		Holder: e.Holder, Waited: SpanOf(e.Waited), Held: SpanOf(e.Held), Author: e.Author, Reason: e.Reason,
	}
}

// Driver returns what the form is of.
func (e Event) Driver() driver.Event {
	return driver.Event{
		ID: e.ID, Kind: e.Kind, Name: e.Name, Ago: e.Ago.Duration(), Mode: e.Mode, Limit: e.Limit, Permits: e.Permits, Token: e.Token,
		Holder: e.Holder, Waited: e.Waited.Duration(), Held: e.Held.Duration(), Author: e.Author, Reason: e.Reason,
	}
}
