package holdfasttest

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A Kit is a store in memory with clients, in which a test causes faults. Make one with New. Its
// methods are safe for concurrent use, but those that can fail the test must be called from the
// test's goroutine, as t.Fatal must.
type Kit struct {
	// Client is on the kit's store, with default options. It is closed when the test
	// ends.
	Client *holdfast.Client

	t      testing.TB
	made   time.Time
	store  *mem.Engine
	losses driver.Losses // the losses that Lose causes
	output output

	mu      sync.Mutex // guards the rest
	trouble trouble
	leases  map[lockinfo.LeaseID]*lease // that clients have requested
	changed chan struct{}               // closed at the next change; nil if no goroutine waits for one
	clients []*holdfast.Client
}

// New returns a kit with an empty store. When the test ends, after the cleanups
// that the test registers later, it fails the test for every lease that was not
// released within a second, and closes the clients. In a bubble of testing/synctest
// t must be the bubble's.
func New(t testing.TB) *Kit {
	t.Helper()
	k := newKit(t)
	t.Cleanup(k.end)
	k.Client = k.NewClient(nil)
	return k
}

func newKit(t testing.TB) *Kit {
	return &Kit{t: t, made: time.Now(), store: mem.New(nil), output: output{to: t.Output()}, leases: map[lockinfo.LeaseID]*lease{}}
}

// NewClient returns one more client on the kit's store, like that of another process. It is closed
// when the test ends, and logs to the test unless the options have a Logger. Options that are out
// of range fail the test.
func (k *Kit) NewClient(opts *holdfast.Options) *holdfast.Client {
	k.t.Helper()
	e := newEngine(k)
	c, err := holdfast.New(e, k.options(opts, e))
	if err != nil {
		k.t.Fatal(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clients = append(k.clients, c)
	return c
}

// options adds an Observer that notes the leases that the client of e leaves, and a Logger
// that writes to the test.
func (k *Kit) options(opts *holdfast.Options, e *engine) *holdfast.Options {
	o := *cmp.Or(opts, &holdfast.Options{})
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(&k.output, nil))
	}
	o.Observer = holdfast.Observers(func(event holdfast.Event) {
		if event.Kind == holdfast.LeaseLeft { // another client may have adopted it by now
			k.note(event.LeaseID, func(l *lease) { l.left = l.by == e })
		}
	}, o.Observer)
	return &o
}

// Engine returns one more engine on the kit's store, for programs that make their clients
// themselves. They must close these clients. A lease that they Leave counts as one that was not
// released.
func (k *Kit) Engine() driver.Engine { return newEngine(k) }

// HoldElsewhere lets another holder have the exclusive lock of a name from now on, for d: 10 ms to
// 30 days, even if the store does not answer the kit's clients. It returns a function that releases
// the lock earlier; further calls of this function do nothing. HoldElsewhere fails the test if the
// lock is not free: Lose takes it from its holder. For a holder that shares a lock, or has some of
// its permits, make another client with NewClient.
func (k *Kit) HoldElsewhere(name string, d time.Duration) (release func()) {
	k.t.Helper()
	if err := driver.CheckName(name); err != nil {
		k.t.Fatalf("holdfasttest: hold %q elsewhere: %v", name, err)
	}
	if d < holdfast.MinTTL || d > holdfast.MaxTTL {
		k.t.Fatalf("holdfasttest: hold %q elsewhere for %s: want %s to %s", name, d, holdfast.MinTTL, holdfast.MaxTTL)
	}
	req := driver.AcquireRequest{Name: name, LeaseID: lockinfo.NewLeaseID(), TTL: d, Holder: elsewhere}
	reply, err := k.store.Acquire(context.Background(), req)
	switch {
	case err != nil:
		k.t.Fatalf("holdfasttest: hold %q elsewhere: %v", name, err)
	case reply.Outcome != driver.Granted:
		k.t.Fatalf("holdfasttest: hold %q elsewhere: %s", name, reply.Possession())
	}
	k.change()
	return func() {
		// The lease may have ended by then; that makes no difference to the test.
		_ = k.store.Release(context.Background(), driver.ReleaseRequest{Name: name, LeaseID: req.LeaseID})
		k.change()
	}
}

// elsewhere is the holder of the locks of HoldElsewhere.
var elsewhere = lockinfo.Holder{Host: "elsewhere", Label: "somebody else"}

// Lose ends all leases of a name before they expire. The lock goes to the next waiter, and the
// context of each holder that loses it ends at once, with a cause that is ErrLost. Lose fails the
// test if the lock is free.
//
// To simulate a holder that is cut off, and notices the loss only at its deadline, call BreakStore
// and let the time pass. For a loss that a person causes, call Client.Break.
func (k *Kit) Lose(name string) {
	k.t.Helper()
	var ended []lockinfo.LeaseID
	for _, h := range k.inspect(name).Holders {
		if h.Released {
			continue
		}
		k.note(h.LeaseID, func(l *lease) { l.lost = true })
		if k.store.Release(context.Background(), driver.ReleaseRequest{Name: name, LeaseID: h.LeaseID}) == nil {
			ended = append(ended, h.LeaseID)
		}
	}
	if len(ended) == 0 {
		k.t.Fatalf("holdfasttest: lose %q: nobody has it", name)
	}
	tell := func() {
		for _, id := range ended {
			k.losses.Tell(driver.Loss{Name: name, LeaseID: id, Err: driver.ErrLost})
		}
	}
	tell()
	time.AfterFunc(driver.LossStart, tell) // a client may learn of its grant only after the first call
	k.change()
}

// inspect reads a lock from the store, whatever trouble there is.
func (k *Kit) inspect(name string) lockinfo.LockState {
	k.t.Helper()
	lock, err := k.store.Inspect(context.Background(), name)
	if err != nil {
		k.t.Fatalf("holdfasttest: inspect %q: %v", name, err)
	}
	return lock
}
