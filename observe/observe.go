package observe

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An Observer receives events, for metrics, traces and logs. No caller waits
// for it: events are put into a queue, and one goroutine for each client, service
// or guard delivers them, in their order. One Observer that is given to several of them
// is called by several goroutines at once.
//
// It may take its time, but events that cannot wait any longer are dropped; see
// the documentation of the package. One that panics goes on with the next event.
type Observer func(Event)

// Observers returns an Observer that calls each of all, in their order. If one
// panics, the others are called all the same; the panic goes on after that. Nil
// Observers are left out, and if none is left it returns nil.
func Observers(all ...Observer) Observer {
	some := slices.DeleteFunc(slices.Clone(all), func(o Observer) bool { return o == nil })
	switch len(some) {
	case 0:
		return nil
	case 1:
		return some[0]
	}
	return func(e Event) { tellAll(some, e) }
}

// tellAll tells the first last to whom a panic matters: each call has the rest
// told by its deferred call, which runs even if the first panics.
func tellAll(some []Observer, e Event) {
	if len(some) > 1 {
		defer tellAll(some[1:], e)
	}
	some[0](e)
}

// An Event is one thing that happened. Which fields have a meaning depends on its
// Kind, see there; the others are zero. It never has a secret or a payload in it,
// except LeaseID and Key: a client that knows a lease ID can release the lease, so
// they are not for logs.
type Event struct {
	Kind Kind

	// Time is when it happened, with a monotonic reading.
	Time time.Time

	// Context has the values, such as the parent span, of the context of the call that
	// caused the event. Events of a lease in the background, and its loss, have the
	// context of the call that acquired it. It may have ended. It is never nil.
	Context context.Context `json:"-"`

	Name string // of the lock, the do-once key, the resource of a claim, or the collection of one-time tokens
	Mode lockinfo.Mode
	Once bool // the lock is of do-once work

	// LeaseID is the ID of the lease, or of the latest request of an acquire, which may
	// use several one after the other. Key is the same in all events of one acquire
	// and of its lease, and in no other's.
	LeaseID lockinfo.LeaseID `json:"-"`
	Key     lockinfo.LeaseID `json:"-"`
	Token   uint64           // fencing token; 0 if there was no grant

	// Holder is who is in the way, or was before the lock was acquired, as far as the
	// store has said.
	Holder lockinfo.Holder
	Place  int // in the queue of the store, 1 for its head; 0 if there is none
	Queue  int // how many are in the queue; 0 if the store does not tell

	Attempt   int           // how many requests this acquire has sent so far
	AfterWait bool          // the event ends a wait, which began with Waiting
	Waited    time.Duration // since the acquire began
	Held      time.Duration // for how long the lease was held
	Remaining time.Duration // how long the lease may be trusted without another renewal
	Took      time.Duration // the request, the outage, or the run that the event is about

	Author string // who broke the lock
	Reason string // why they did

	Current   uint64    // the mark of the resource: the greatest token that it has accepted; 0 if unknown
	TokenID   string    // of a one-time token, which is not secret; empty if the secret is malformed
	Count     int       // how many one-time tokens were pruned, or runs were missed
	Status    int       // of an HTTP response
	Code      string    // of the refusal of an HTTP request
	Kept      bool      // the HTTP response is kept: a repeat does not run
	Scheduled time.Time // for when a run of a schedule was due

	Err error // why; see Kind
}

// BeginsWait reports whether an acquire begins to wait. Each wait that begins ends
// once, with an event of the same Key for which EndsWait is true.
func (e Event) BeginsWait() bool { return e.Kind == Waiting }

// EndsWait reports whether an acquire has waited and waits no more.
func (e Event) EndsWait() bool { return e.AfterWait }

// BeginsHold reports whether a lease is held from now on. Each possession that
// begins ends once, with an event of the same Key for which EndsHold is true.
func (e Event) BeginsHold() bool { return e.Kind == Acquired }

// EndsHold reports whether a lease is held no more.
func (e Event) EndsHold() bool {
	return e.Kind == Released || e.Kind == Lost || e.Kind == LeaseLeft
}
