package holdfast

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A HistoryEvent is one thing that happened to a name, as the store recorded it: its
// ID, Kind and Name, how long Ago it was, the Mode, Token and Holder of the lease or
// of the request, how long it has Waited or was Held, and the Author and Reason of a
// break. It has no lease ID.
type HistoryEvent = lockinfo.HistoryEvent

// A HistoryKind is what happened.
type HistoryKind = lockinfo.HistoryKind

// The kinds of events in a history, and of a feed.
const (
	HistoryGap        = lockinfo.HistoryGap        // events may have been missed; only of a feed
	HistoryAcquired   = lockinfo.HistoryAcquired   // a lease was granted at once
	HistoryHandedOver = lockinfo.HistoryHandedOver // the lock went to the first of the queue
	HistoryReleased   = lockinfo.HistoryReleased   // the holder released it
	HistoryExpired    = lockinfo.HistoryExpired    // the lease ran out, and a client noticed
	HistoryLost       = lockinfo.HistoryLost       // the holder released what it had lost
	HistoryBroken     = lockinfo.HistoryBroken     // an operator or another client ended the lease
	HistoryQueued     = lockinfo.HistoryQueued     // a client began to wait
	HistoryGaveUp     = lockinfo.HistoryGaveUp     // a waiter left without the lock
	HistoryCompleted  = lockinfo.HistoryCompleted  // do-once work is done
)

// maxFeed is how many events may wait for a loop over a feed. INVARIANT I11.
const maxFeed = 4096

// History returns what happened to a name in the last 24 hours, the oldest first: the
// latest 64 breaks, the latest 64 other events of leases, and the latest 64 events of
// waiters. It is empty if nothing happened. The error wraps ErrUnsupported if the store has no
// history: it has one only if the engine was opened with it (history=1 in a URL).
// Clients whose engines keep no history leave no events in it. ErrUnavailable means that
// the store did not answer within Options.RequestTimeout.
func (c *Client) History(ctx context.Context, name string) ([]HistoryEvent, error) {
	if err := c.checkName(name); err != nil {
		return nil, opError("history of", name, err)
	}
	if c.features.Historian == nil {
		return nil, opError("history of", name, errNoHistory)
	}
	ctx, cancel := c.requestContext(ctx)
	defer cancel()
	events, err := c.features.Historian.History(ctx, name)
	return events, opError("history of", name, ask.Harmless(ctx, err))
}

// Feed yields the events, from now on and by all clients, of names that begin with prefix; an
// empty prefix is every name. An event may come late, or twice, with the same ID.
//
// The first event is HistoryGap, as soon as the engine listens. Another HistoryGap comes
// whenever events may have been missed, because a connection was lost, the store's file was deleted
// or replaced, or the loop is more than 4,096 events late: call History or Inspect then.
//
// The sequence ends with an error: ctx's, ErrClosed after Close, or, at once, one
// that wraps ErrUnsupported if the store has no history.
func (c *Client) Feed(ctx context.Context, prefix string) iter.Seq2[HistoryEvent, error] {
	return func(yield func(HistoryEvent, error) bool) {
		if err := c.feed(ctx, prefix, yield); err != nil {
			yield(HistoryEvent{}, opError("feed of", prefix, err))
		}
	}
}

// feed yields events. It returns nil if the loop ends, or an error if there can be no more events.
func (c *Client) feed(ctx context.Context, prefix string, yield func(HistoryEvent, error) bool) error {
	switch err := c.check(); {
	case err != nil:
		return err
	case c.isClosed():
		return ErrClosed
	case c.features.Historian == nil:
		return errNoHistory
	}
	f := feed{wake: make(chan struct{}, 1)}
	stop := c.features.Historian.OnEvent(func(e HistoryEvent) { f.add(e, prefix) })
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return ask.ContextError(ctx)
		case <-c.closing:
			return ErrClosed
		case <-f.wake:
		}
		for _, e := range f.take() {
			if ctx.Err() != nil {
				break
			}
			if !yield(e, nil) {
				return nil
			}
		}
	}
}

// errNoHistory is the error of an engine that keeps no history, or was opened without it.
var errNoHistory = fmt.Errorf("history is %w: open the engine with it", ErrUnsupported)

// A feed has the events that wait for one loop.
type feed struct {
	wake    chan struct{} // has room for one
	mu      sync.Mutex    // guards the rest
	waiting []HistoryEvent
}

// add is called by the engine, which must not wait for the loop.
func (f *feed) add(e HistoryEvent, prefix string) {
	if e.Kind != HistoryGap && !strings.HasPrefix(e.Name, prefix) {
		return
	}
	f.mu.Lock()
	if len(f.waiting) >= maxFeed {
		f.waiting = append(f.waiting[:0], HistoryEvent{Kind: HistoryGap})
	}
	f.waiting = append(f.waiting, e)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take removes and returns the waiting events.
func (f *feed) take() []HistoryEvent {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.waiting
	f.waiting = nil
	return all
}
