package lockinfo

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/internal/named"
	"github.com/holdfast-locks/holdfast/internal/sentinel"
)

// Shares reports whether events of two kinds count towards the same limit of a history.
func (k HistoryKind) Shares(other HistoryKind) bool { return k.sort() == other.sort() }

// sort returns the number of the limit that applies to events of the kind.
func (k HistoryKind) sort() int {
	switch k {
	case HistoryBroken:
		return 0
	case HistoryQueued, HistoryGaveUp:
		return 1
	}
	return 2
}

// A HistoryEvent is one thing that happened to a name, as the store has written it down.
type HistoryEvent struct {
	// ID is the ID of the event: 1 to 64 letters, digits and the characters "-", "."
	// and ":". It is unique in the store, and the same for every engine that reads or
	// receives the event. IDs have no order. Empty for HistoryGap, which has no
	// other field.
	ID   string        `json:"id,omitzero"`
	Kind HistoryKind   `json:"kind"`
	Name string        `json:"name,omitzero"`
	Ago  time.Duration `json:"ago_ns,omitzero"` // since it happened, by the store's clock; never negative

	// Mode, Token and Holder are the lease's, or the request's. If the event
	// ends a lease, they are those at its end.
	Mode   Mode   `json:"mode,omitzero"`
	Token  uint64 `json:"token,omitzero"`
	Holder Holder `json:"holder,omitzero"`

	// Waited is how long the place has lasted, from when the store saw the first
	// request to the event. It is set for HistoryHandedOver and HistoryGaveUp.
	Waited time.Duration `json:"waited_ns,omitzero"`

	// Held is how long the lease has lasted, from its grant to the event. It is set for
	// events that end a lease.
	//
	// If a lease or a place has ended without a request, such as by expiry, Held and Waited
	// count to that end, and Ago counts from the end of the lease, if the store knows it.
	// Otherwise they count to and from the instant at which the end was noticed.
	Held time.Duration `json:"held_ns,omitzero"`

	Author string `json:"author,omitzero"` // of HistoryBroken: who broke the lease, and why
	Reason string `json:"reason,omitzero"`
}

// A HistoryKind is the kind of an event.
type HistoryKind int

const (
	HistoryGap        HistoryKind = iota // events may have been missed; sent by OnEvent, never written
	HistoryAcquired                      // a lease was granted to a request without a place
	HistoryHandedOver                    // a place became a lease
	HistoryReleased                      // the holder released the lease, KeepFor or not
	HistoryExpired                       // the lease ran out, and a client noticed
	HistoryLost                          // the holder released a lease that it counts as lost; see ReleaseRequest.Lost
	HistoryBroken                        // the lease was taken away
	HistoryQueued                        // a request was given a place
	HistoryGaveUp                        // a place ended without a lease: given up, expired, or the name has a record
	HistoryCompleted                     // the holder has stored its record, and so ended the lease
)

var eventKinds = [...]string{
	"gap", "acquired", "handed over", "released", "expired", "lost", "broken", "queued", "gave up", "completed",
}

// String returns the name of the kind for people, such as "handed over".
func (k HistoryKind) String() string { return named.Of(k, "HistoryKind", eventKinds[:]...) }

// Begins reports whether a lease begins with the event.
func (k HistoryKind) Begins() bool { return k == HistoryAcquired || k == HistoryHandedOver }

// Ends reports whether the event ends a lease.
func (k HistoryKind) Ends() bool {
	switch k {
	case HistoryReleased, HistoryExpired, HistoryLost, HistoryBroken, HistoryCompleted:
		return true
	}
	return false
}

// MarshalText returns the name of the kind with an underscore for a space. It
// fails for a number that is not a kind.
func (k HistoryKind) MarshalText() ([]byte, error) {
	if k < 0 || int(k) >= len(eventKinds) {
		return nil, fmt.Errorf("%w event kind %d", sentinel.ErrInvalid, int(k))
	}
	return []byte(strings.ReplaceAll(k.String(), " ", "_")), nil
}

// UnmarshalText sets the kind by its name. Another text is an error that wraps
// holdfast.ErrInvalid, and leaves the kind unchanged.
func (k *HistoryKind) UnmarshalText(text []byte) error {
	for of := range eventKinds {
		if name, _ := HistoryKind(of).MarshalText(); string(name) == string(text) {
			*k = HistoryKind(of)
			return nil
		}
	}
	return fmt.Errorf("%w event kind %q", sentinel.ErrInvalid, text)
}
