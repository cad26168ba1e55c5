package driver

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// A Historian is an engine with Capabilities.History: it writes down what happens
// to each name, and tells of it. It must not set the flag unless whoever opened it
// has asked for that.
//
// # What is written
//
// Each grant must have one event that begins the lease, EventAcquired or
// EventHandedOver, and one that ends it: EventReleased, EventExpired, EventLost,
// EventBroken or EventCompleted. Each place must have EventQueued, and then
// EventHandedOver or EventLeft. A Break of what KeepFor keeps closed must write
// EventBroken as well, after the end of its lease. Nothing else must be written: a
// repeat, a renewal, a downgrade, a refusal and a request that fails have no event,
// and nor has what a foreign client does.
//
// An event must be written in the step that it is about, so that there is no
// event without the step, no step without its event, and no request more than
// without history. What nobody reports must be written by the step that notices
// it: that a lease expired, and that a place was given up because nobody refreshed
// it. That is the next Acquire or Refresh for the name, whoever sends it, or
// History itself.
//
// An event must have no lease ID in it: whoever knows one can release the lease
// (INVARIANT I4).
type Historian interface {
	// History returns the events of a name, the oldest first, in the order in which
	// the store carried the steps out. An event must be remembered for
	// HistoryMemory, but of one name only the latest MaxHistory, and no longer
	// (INVARIANT I11). Only engines with the flag write: what others do to the same
	// store may be missing. To ask must leave nothing behind of a name that nobody
	// has used.
	History(ctx context.Context, name string) ([]Event, error)

	// OnEvent registers told, which is then called for each event of any name,
	// whichever engine on the store has written it, until stop is called. It is
	// called with EventGap first, as soon as the engine listens: every event that is
	// written from then on must be told, those of one name in their order. An event
	// may come late or twice. If any may have been missed, told must be called with
	// EventGap as soon as the engine knows. As long as nobody has registered, all
	// this must cost nothing.
	//
	// told is guaranteed to return soon, and is never called twice at a time. It
	// must be called without any lock of the engine, and must not be called after
	// stop has returned, unless that call had begun. A second stop does nothing.
	OnEvent(told func(Event)) (stop func())
}

const (
	// HistoryMemory is how long an event is remembered.
	HistoryMemory = 24 * time.Hour

	// MaxHistory is how many events of one name are remembered.
	MaxHistory = 64
)

// An Event is one thing that happened to a name, as the store has written it down.
type Event struct {
	// ID is that of the event: 1 to 64 letters, digits and the characters "-", "."
	// and ":". It is unique in the store, and the same for every engine that reads or
	// hears of the event. It says nothing about order. Empty for EventGap, which has no
	// other field.
	ID   string
	Kind EventKind
	Name string
	Ago  time.Duration // since the event was written; of the store's clock, never negative

	// What the lease was, or the request for it; of EventReleased and the others that
	// end a lease, what it was at its end.
	Mode    Mode
	Limit   int // of a Semaphore; else 0
	Permits int // of a Semaphore; else 0
	Token   uint64
	Holder  Holder // whose lease it was, or whose request

	// Waited is how long the place has lasted, from when the store saw the first
	// request to the event; of EventHandedOver and EventLeft, else 0.
	Waited time.Duration

	// Held is how long the lease has lasted, from its grant to the event; of those that
	// end a lease, else 0.
	//
	// Of what nobody reported, Held and Waited end with the lease or the place, or,
	// if the store forgets its end along with it, when that was noticed.
	Held time.Duration

	Author string // of EventBroken: who broke it, and why
	Reason string
}

// An EventKind says what happened.
type EventKind int

const (
	EventGap        EventKind = iota // events may have been missed; told by OnEvent, never written
	EventAcquired                    // a lease was granted that had no place
	EventHandedOver                  // a place became a lease
	EventReleased                    // the holder gave the lease back, KeepFor or not
	EventExpired                     // the lease ran out, and somebody noticed
	EventLost                        // the holder gave back what it counts as lost; see ReleaseRequest.Lost
	EventBroken                      // the lease was taken away
	EventQueued                      // a request was given a place
	EventLeft                        // a place ended without a lease: given up, over, or there is a record
	EventCompleted                   // the holder has stored its record, and so ended the lease
)

var eventKinds = [...]string{
	"gap", "acquired", "handed over", "released", "expired", "lost", "broken", "queued", "left", "completed",
}

// String returns the name of the kind for people, such as "handed over".
func (k EventKind) String() string { return nameOf(k, "EventKind", eventKinds[:]...) }

// Begins reports whether a lease begins with the event.
func (k EventKind) Begins() bool { return k == EventAcquired || k == EventHandedOver }

// Ends reports whether a lease is over with the event.
func (k EventKind) Ends() bool {
	switch k {
	case EventReleased, EventExpired, EventLost, EventBroken, EventCompleted:
		return true
	}
	return false
}

// MarshalText returns the name of the kind with an underscore for a space. It
// fails for a number that is not a kind.
func (k EventKind) MarshalText() ([]byte, error) {
	if k < 0 || int(k) >= len(eventKinds) {
		return nil, fmt.Errorf("%w event kind %d", ErrInvalid, int(k))
	}
	return []byte(strings.ReplaceAll(k.String(), " ", "_")), nil
}

// UnmarshalText sets the kind by its name. Another text is an error that wraps
// ErrInvalid, and leaves the kind as it is.
func (k *EventKind) UnmarshalText(text []byte) error {
	for of := range eventKinds {
		if name, _ := EventKind(of).MarshalText(); string(name) == string(text) {
			*k = EventKind(of)
			return nil
		}
	}
	return fmt.Errorf("%w event kind %q", ErrInvalid, text)
}
