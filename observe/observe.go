package observe

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An Observer receives events, for metrics, traces and logs. No caller waits for it: events are put
// into a queue, and one goroutine for each client, service or guard delivers them, in their order.
// An Observer that is given to several of them is called by several goroutines at once.
//
// An Observer may be slow, but events beyond the bounded queue are dropped; see the documentation
// of the package. If it panics, it is called with the next event.
type Observer func(Event)

// Observers returns an Observer that calls each of all, in their order. If one panics, the others
// are still called, and then the panic continues. Nil Observers are left out, and if none is left
// it returns nil.
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

// tellAll calls some[0], and defers the calls of the rest, which run even if it panics.
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

	// Holder is the holder that is in the way, or was until the lock was acquired. It is zero if
	// the store does not report it.
	Holder lockinfo.Holder
	Place  int // the place in the queue of the store, 1 for its head; 0 if there is none
	Queue  int // how many clients are in the queue; 0 if the store does not report it

	Attempt   int           // how many requests this acquire has sent so far
	AfterWait bool          // the event ends a wait, which began with Waiting
	Waited    time.Duration // since the acquire began
	Held      time.Duration // how long the lease has been held
	Remaining time.Duration // how long the lease may be trusted without another renewal
	Took      time.Duration // how long the request, the outage, or the run took

	Author string // who broke the lock
	Reason string // why they did

	Current   uint64    // the mark of the resource: the greatest token that it has accepted; 0 if unknown
	TokenID   string    // the ID of a one-time token, which is not secret; empty if the secret is malformed
	Count     int       // how many one-time tokens were pruned, or runs were missed
	Status    int       // the status of an HTTP response
	Code      string    // the code with which an HTTP request was refused
	Kept      bool      // the HTTP response is kept: a repeat does not run the handler
	Scheduled time.Time // when the run of a schedule was due

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
