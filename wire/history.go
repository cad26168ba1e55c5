package wire

import "github.com/holdfast-locks/holdfast/lockinfo"

// A History is what happened to one name lately.
type History struct {
	Name   string         `json:"name"`
	Events []HistoryEvent `json:"events"` // the oldest first
}

// A HistoryEvent is one thing that happened to a name, as the store has recorded it. A gap means
// that events may be missing; it has no other field.
type HistoryEvent struct {
	ID    string `json:"id,omitempty"`
	Event string `json:"event"` // acquired, handed_over, released, expired, lost, broken, queued, gave_up, completed; gap
	Name  string `json:"name,omitempty"`
	AgoMS *int64 `json:"ago_ms,omitempty"`

	Mode    string `json:"mode,omitempty"`
	Limit   int    `json:"limit,omitempty"`   // of a semaphore
	Permits int    `json:"permits,omitempty"` // of a semaphore
	*Token         // nil if there was no lease
	Holder  *Who   `json:"holder,omitempty"`

	WaitedMS *int64 `json:"waited_ms,omitempty"` // only in handed_over and gave_up
	HeldMS   *int64 `json:"held_ms,omitempty"`   // only in events that end a lease
	Author   string `json:"author,omitempty"`    // in broken: who broke the lease
	Reason   string `json:"reason,omitempty"`    // in broken: why
}

// HistoryOf returns the events of one name.
func HistoryOf(name string, events []lockinfo.HistoryEvent) History {
	v := History{Name: name, Events: make([]HistoryEvent, len(events))}
	for i, e := range events {
		v.Events[i] = HistoryEventOf(e)
	}
	return v
}

// HistoryEventOf returns one event.
func HistoryEventOf(e lockinfo.HistoryEvent) HistoryEvent {
	kind, _ := e.Kind.MarshalText()
	v := HistoryEvent{Event: string(kind)}
	if e.Kind == lockinfo.HistoryGap {
		return v
	}
	v.ID, v.Name, v.AgoMS, v.Holder = e.ID, e.Name, Left(e.Ago), new(WhoOf(e.Holder))
	v.Mode, v.Limit, v.Permits, v.Author, v.Reason = e.Mode.Kind(), e.Mode.Limit(), e.Mode.Permits(), e.Author, e.Reason
	if e.Token > 0 {
		v.Token = new(TokenOf(e.Token))
	}
	if e.Kind == lockinfo.HistoryHandedOver || e.Kind == lockinfo.HistoryGaveUp {
		v.WaitedMS = Left(e.Waited)
	}
	if e.Kind.Ends() {
		v.HeldMS = Left(e.Held)
	}
	return v
}
