package driver

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Historian is an engine with Capabilities.History: it records the events of each
// name, and announces them. It must set the flag only if the program that opened it
// wants a history.
//
// # What is written
//
// Each grant must have one event that begins the lease, HistoryAcquired or HistoryHandedOver, and
// one that ends it: HistoryReleased, HistoryExpired, HistoryLost, HistoryBroken or
// HistoryCompleted. Each place must have HistoryQueued, and then HistoryHandedOver or
// HistoryGaveUp. A Break that opens a name that KeepFor keeps closed must write HistoryBroken as
// well, after the end of its lease. Nothing else must be written: a repeat, a renewal, a downgrade,
// a refusal and a request that fails have no event, and neither has an action of a foreign client.
//
// An event must be written in the step that it describes: no event without its step,
// no step without its event, and no additional request. An event without a request,
// such as the expiry of a lease or of a place that was not refreshed, must be
// written by the step that notices it. That is the next Acquire or Refresh for the
// name, of any client, or History itself.
//
// An event must have no lease ID in it: a client that knows one can release the lease
// (INVARIANT I4).
type Historian interface {
	// History returns the events of a name, the oldest first, in the order in which the store
	// carried the steps out. An event must be remembered for HistoryMemory, but of one name
	// only what KeepHistory keeps, and no longer (INVARIANT I11). Only engines with the flag
	// record events, so events of others may be missing. The request must leave nothing in
	// the store about a name that was never used.
	History(ctx context.Context, name string) ([]lockinfo.HistoryEvent, error)

	// OnEvent registers listener, which is then called for each event of any name,
	// whichever engine on the store has written it, until stop is called. It is
	// called with HistoryGap first, as soon as the engine listens: every event
	// written from then on must be delivered, and the events of one name in their
	// order. An event may come late or twice. If any may have been missed, listener must
	// be called with HistoryGap as soon as the engine knows. While no function is
	// registered, all this must cost nothing.
	//
	// listener is guaranteed to return soon, and is never called twice at a time. It
	// must be called without any lock of the engine, and must not be called after
	// stop has returned, unless that call had begun. A second stop does nothing.
	OnEvent(listener func(lockinfo.HistoryEvent)) (stop func())
}

const (
	// HistoryMemory is how long an event is remembered.
	HistoryMemory = 24 * time.Hour

	// MaxHistory is how many events of each sort are remembered of one name. The sorts are
	// breaks, other events of leases, and events of places.
	MaxHistory = 64
)

// KeepHistory deletes events above MaxHistory from the events of a name, the oldest
// first. Each sort has its own limit, so neither many waiters nor a busy name hide a
// break.
func KeepHistory[E any](events []E, kind func(E) lockinfo.HistoryKind) []E {
	var many [len(sorts)]int
	for _, e := range events {
		many[sortOf(kind(e))]++
	}
	return slices.DeleteFunc(events, func(e E) bool {
		n := &many[sortOf(kind(e))]
		*n--
		return *n >= MaxHistory
	})
}

// sorts has one kind of each sort of events. The events of a sort share one limit of MaxHistory.
var sorts = [...]lockinfo.HistoryKind{lockinfo.HistoryBroken, lockinfo.HistoryQueued, lockinfo.HistoryAcquired}

func sortOf(kind lockinfo.HistoryKind) int {
	return slices.IndexFunc(sorts[:], kind.Shares)
}
