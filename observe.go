package holdfast

import (
	"context"

	"github.com/holdfast-locks/holdfast/observe"
)

// An Observer is told what happens to leases, for metrics, traces and logs.
// It is called from several goroutines at once, but with the events of one lease in
// their order. It must not call methods of the Client.
//
// Acquired, Waiting, Refused, Released, Left and outages are told by the call that they are
// about, before it returns: a slow Observer makes that call slow. Everything
// else is told in the background, after it has taken effect: no Observer
// holds up a renewal, or the end of a lost lease's context. Close waits until
// all is told.
type Observer = observe.Observer

// An Event is one thing that happened; see package observe.
type Event = observe.Event

// An EventKind says what happened; see package observe for what comes when.
type EventKind = observe.Kind

// The kinds of events; package observe says what they mean.
const (
	Acquired      = observe.Acquired
	Waiting       = observe.Waiting
	Refused       = observe.Refused
	Renewed       = observe.Renewed
	RenewFailed   = observe.RenewFailed
	Lost          = observe.Lost
	Released      = observe.Released
	CleanupFailed = observe.CleanupFailed
	OutageBegan   = observe.OutageBegan
	OutageEnded   = observe.OutageEnded
	Left          = observe.Left
	HandedOver    = observe.HandedOver
	LeaseBroken   = observe.LeaseBroken
	PlaceChanged  = observe.PlaceChanged

	OnceCompleted = observe.OnceCompleted
	OnceReplayed  = observe.OnceReplayed
	OnceFailed    = observe.OnceFailed

	RunDone   = observe.RunDone
	RunFailed = observe.RunFailed
	RunMissed = observe.RunMissed
)

// Observers returns an Observer that tells each of all, in their order.
func Observers(all ...Observer) Observer { return observe.Observers(all...) }

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
