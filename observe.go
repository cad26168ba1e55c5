package holdfast

import (
	"context"
	"time"
)

// An Observer is told what happens to leases, for metrics and logs. It is
// called from several goroutines at once, but with the events of one lease in
// their order. It must not call methods of the Client.
//
// Acquired, Waiting, Refused, Released, Left and outages are told by the call that they are
// about, before it returns: a slow Observer makes that call slow. Everything
// else is told in the background, after it has taken effect: no Observer
// holds up a renewal, or the end of a lost lease's context. Close waits until
// all is told.
type Observer func(Event)

// An Event is one thing that happened to one lease.
type Event struct {
	Kind    EventKind
	Name    string
	LeaseID LeaseID
	Token   uint64        // 0 if there was no grant
	Took    time.Duration // Acquired, Refused: the wait; Released, Lost, Left: the possession; Renewed, RenewFailed: the request; OutageEnded: the outage
	Err     error         // why, for Waiting, Refused, RenewFailed, Lost, CleanupFailed and OutageBegan
}

// An EventKind says what happened.
type EventKind int

const (
	Acquired      EventKind = iota // a lease was handed to the caller, by Adopt too
	Waiting                        // the first attempt met another holder; Acquire waits
	Refused                        // an acquire, or an Adopt, ended without a lease
	Renewed                        // the lease was lengthened, by the keep-alive or by Extend
	RenewFailed                    // a renewal failed or was not answered; it is retried until the deadline
	Lost                           // the lease is over without a release
	Released                       // the holder gave the lease back
	CleanupFailed                  // an abandoned request could not be cancelled; its lease, if any, ends with its TTL
	OutageBegan                    // the store does not answer an Acquire that waits, which goes on waiting
	OutageEnded                    // it answers again
	Left                           // the holder left the lease to whoever adopts it
)

func (k EventKind) String() string {
	return nameOf(int(k), "acquired", "waiting", "refused", "renewed", "renew-failed", "lost", "released", "cleanup-failed", "outage-began", "outage-ended", "left")
}

// A report is an event of a lease that the Observer has to be told of. The zero
// report is none.
type report struct {
	lease *Lease
	event Event
}

// tell reports in the background.
func (c *Client) tell(reports []report) {
	if c.observed && len(reports) > 0 {
		c.spawn(func(context.Context) { c.report(reports) })
	}
}

// report tells the Observer, which may take its time. Meanwhile a lease may have
// ended, and its end been told: then what was before is not told any more.
func (c *Client) report(reports []report) {
	for _, r := range reports {
		if r.lease == nil || r.event.Kind != Lost && r.lease.isOver() {
			continue
		}
		c.opts.Observer(r.event)
	}
}
