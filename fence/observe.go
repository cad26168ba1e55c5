package fence

import "errors"

// An Observer is told what guards decide, for metrics and logs. It is called
// synchronously, from several goroutines at once, and must return soon: in a
// transaction, it holds up the row's lock.
type Observer func(Event)

// An Event is one decision of one guard.
type Event struct {
	Kind     EventKind
	Resource string
	Token    uint64
	Current  uint64 // Refused: the mark, 0 if unknown; Accepted: equal to Token
}

// An EventKind says what a guard decided.
type EventKind int

const (
	Accepted EventKind = iota // the claim is the mark now; in a transaction, once it commits
	Refused                   // the claim is stale: a holder went on after its lease was over
)

func (k EventKind) String() string {
	switch k {
	case Accepted:
		return "accepted"
	case Refused:
		return "refused"
	}
	return "unknown"
}

// Report tells the observer, if there is one, what a guard answered to c. An
// error that is not a decision, such as a broken connection, is not told.
func (o Observer) Report(resource string, c Claim, err error) {
	if o == nil {
		return
	}
	var stale *StaleError
	switch {
	case err == nil:
		o(Event{Kind: Accepted, Resource: resource, Token: c.Token(), Current: c.Token()})
	case errors.As(err, &stale):
		o(Event{Kind: Refused, Resource: resource, Token: c.Token(), Current: stale.Current})
	}
}
