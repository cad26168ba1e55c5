package holdfast

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// How long a waiter sleeps at most.
const (
	// refresh is for engines that notify: it bounds how long a lost message,
	// or a foreign client that deleted its key, goes unnoticed.
	refresh = 2 * time.Second
	// pollLongest is for engines that do not.
	pollLongest = 250 * time.Millisecond
	// expirySlack is waited beyond the holder's expiry, which stores report
	// in whole milliseconds, and expiryJitter spreads those who wait for it.
	expirySlack  = 2 * time.Millisecond
	expiryJitter = 20 * time.Millisecond
	// waiterTTL is how long a dead waiter may delay the queue. INVARIANT I7.
	waiterTTL = 5 * time.Second
)

// A waiter is the sleeping side of an acquisition that met another holder.
type waiter struct {
	*acquisition
	watch   driver.Watch // nil until the first pause, and if the engine has none
	polling backoff      // without a watch
	failing backoff      // while the store does not answer
	told    bool         // the Observer knows that we wait
}

// pause returns nil when it is time for the next attempt, or ctx's error.
//
// The first pause is none: it starts the watch and then lets the next attempt
// look again, because a release before the watch would go unseen. (Watch,
// try, wait: in this order no release is lost.) INVARIANT I7: no path leads
// from here to an attempt without a pause twice in a row.
func (w *waiter) pause(ctx context.Context) error {
	if w.failures > 0 {
		return sleep(ctx, w.failing.next(backoffLast), nil)
	}
	w.failing = backoff{}
	if !w.told {
		w.told = true
		w.req.Queue = w.client.engine.Capabilities().Queue
		if w.req.Queue {
			w.req.WaiterTTL = waiterTTL
		}
		w.client.opts.Observer(Event{Kind: Waiting, Name: w.req.Name, LeaseID: w.req.LeaseID, Err: w.heldError(0)})
		if w.startWatch(ctx) {
			return nil
		}
	}
	var wake <-chan struct{}
	if w.watch != nil {
		wake = w.watch.C()
	}
	return sleep(ctx, w.pauseLength(), wake)
}

// pauseLength returns how long to sleep if no message comes: until the
// holder's lease ends by itself, or the next look.
func (w *waiter) pauseLength() time.Duration {
	longest := refresh
	if w.watch == nil {
		longest = w.polling.next(pollLongest)
	}
	if w.req.Queue {
		longest = min(longest, w.req.WaiterTTL/3)
	}
	longest -= rand.N(longest / 10)
	if left := w.inTheWay.ExpiresIn; left != driver.Never {
		return min(longest, max(left, 0)+expirySlack+rand.N(expiryJitter))
	}
	return longest
}

// startWatch asks the engine for messages. Where it has none, or they cannot
// be had now, the waiter polls.
func (w *waiter) startWatch(ctx context.Context) bool {
	n, ok := w.client.engine.(driver.Notifier)
	if !ok {
		return false
	}
	ctx, cancel := w.client.requestContext(ctx)
	defer cancel()
	watch, err := n.Watch(ctx, w.req.Name)
	if err != nil {
		return false
	}
	w.watch = watch
	return true
}

// stop ends the watch.
func (w *waiter) stop() {
	if w.watch != nil {
		w.watch.Stop()
	}
}
