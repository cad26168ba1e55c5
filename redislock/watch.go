package redislock

import (
	"context"
	"sync"

	"github.com/holdfast-locks/holdfast/driver"
)

// Watch implements driver.Notifier. It blocks until the server has confirmed
// the subscription, ctx ends, or the connection fails.
func (e *Engine) Watch(ctx context.Context, name string) (driver.Watch, error) {
	if err := e.enter(ctx, name); err != nil {
		return nil, err
	}
	w := e.subs.add(e.keys.channel(name))
	if err := e.subs.await(ctx, w); err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

// A watch is one caller's interest in a channel.
type watch struct {
	subs  *subscriber
	topic *topic
	c     chan struct{} // holds one signal
	once  sync.Once
}

func (w *watch) C() <-chan struct{} { return w.c }

func (w *watch) Stop() { w.once.Do(func() { w.subs.remove(w) }) }

// signal wakes the caller unless a signal is waiting already.
func (w *watch) signal() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// A topic is a channel that somebody watches.
type topic struct {
	channel string
	watches map[*watch]struct{}
	// The present attempt to subscribe. It is replaced when it has failed, and
	// when the connection that it was on is lost.
	attempt *attempt
	lost    bool // messages may have been lost since the last confirmation
}

// An attempt is one try to subscribe, over when done is closed.
type attempt struct {
	done chan struct{}
	over bool  // done is closed
	err  error // of a failed attempt; read it after done
}

func newAttempt() *attempt { return &attempt{done: make(chan struct{})} }

// finish ends the attempt; a second time does nothing.
func (a *attempt) finish(err error) {
	if !a.over {
		a.over, a.err = true, err
		close(a.done)
	}
}
