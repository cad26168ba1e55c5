package driver

import (
	"context"
	"iter"
)

// A Notifier is an engine that can tell when a lock may have become free.
// Messages only speed waiting up: they may come late, twice, or never, and
// whoever waits must also set a timer.
type Notifier interface {
	// Watch starts to watch a name. When it returns, a release by any client
	// of the store from then on must be seen, as long as the connection
	// holds; so the order is watch, try, wait. A release with KeepFor should
	// be told as well, because it may bring the expiry nearer. Extending a
	// lease must not cause a message. The caller must stop the watch.
	Watch(ctx context.Context, name string) (Watch, error)
}

// A Watch is one caller's interest in one name.
type Watch interface {
	// C delivers a value when the lock may have become free, and when
	// messages may have been lost. Signals that are not received collapse
	// into one. It is never closed.
	C() <-chan struct{}
	// Stop ends the watch. A second Stop does nothing.
	Stop()
}

// A Lister is an engine that can list the names it knows.
type Lister interface {
	// List yields the locks whose names begin with prefix and that have a
	// holder, in no particular order, each at most once. It must not block
	// the store for longer than a bounded step at a time; names that come or
	// go meanwhile may be missed. An error ends the sequence.
	List(ctx context.Context, prefix string) iter.Seq2[Lock, error]
}
