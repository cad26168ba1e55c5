package traffic

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/systest/check"
	"github.com/holdfast-locks/holdfast/systest/model/lease"
)

// A librarian is a locker that uses the library. It records the library's results; it cannot know
// what the library does in the background.
type librarian struct {
	*locker
	client  *holdfast.Client
	refused chan holdfast.LeaseID // of the last acquire without a lease
}

// library returns the locker as a librarian.
func (l *locker) library() (b *librarian, closed func(), err error) {
	b = &librarian{locker: l, client: l.shared, refused: make(chan holdfast.LeaseID, 1)}
	if b.client != nil {
		return b, func() {}, nil
	}
	b.client, closed, err = l.client()
	return b, closed, err
}

// refusedKey is the key of a librarian's channel in the context of its requests.
type refusedKey struct{}

// client returns a client on the engine of the locker.
func (l *locker) client() (c *holdfast.Client, closed func(), err error) {
	c, err = holdfast.New(&noting{driver.Forward{Engine: l.engine}, l}, &holdfast.Options{
		TTL: l.job.TTL, RequestTimeout: answerWithin,
		Observer: func(e holdfast.Event) {
			if e.Kind == holdfast.Refused {
				e.Context.Value(refusedKey{}).(chan holdfast.LeaseID) <- e.LeaseID
			}
		},
		SharedEngine: true, Cohorts: l.job.Cohorts,
	})
	return c, func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = c.Shutdown(ctx) // waits for cancelled acquires
		_ = c.Close()
	}, err
}

// A noting engine records the cancels of the library.
type noting struct {
	driver.Forward
	*locker
}

func (e *noting) Release(ctx context.Context, req driver.ReleaseRequest) error {
	if !req.Cancel {
		return e.Forward.Release(ctx, req)
	}
	var err error
	o := check.Op{Name: req.Name, Kind: lease.Cancel, LeaseID: string(req.LeaseID), TTL: e.job.TTL}
	e.ask(ctx, o, func(ctx context.Context, _ *check.Op) error {
		err = e.Forward.Release(ctx, req)
		return err
	})
	return err
}

// turn waits for a lock, works, and releases it.
func (b *librarian) turn(ctx context.Context, name string) error {
	opts := &holdfast.AcquireOptions{KeepAlive: holdfast.KeepAliveOff, MaxWait: time.Millisecond + time.Duration(b.rand.Int64N(int64(b.job.TTL)))}
	o := check.Op{Client: b.number, Name: name, Kind: lease.Acquire, TTL: b.job.TTL, Call: check.Now()}
	held, err := b.client.Acquire(context.WithValue(ctx, refusedKey{}, b.refused), name, opts)
	o.Return = check.Now()
	if err != nil {
		// The lock may be held until the cancel in the background.
		o.LeaseID, o.Outcome = string(<-b.refused), lease.Unknown
		b.job.Out(o)
		return unexpected(err)
	}
	o.LeaseID, o.Token, o.Deadline = string(held.ID()), held.Token(), check.Instant(held.Deadline())
	b.job.Out(o)
	accepted, err := write(b.http, b.job.Resource, name, held)
	if err != nil {
		return err
	}
	b.sleep(ctx, b.job.Hold)
	if accepted && b.chance(30) {
		b.told(o, lease.Extend, held, func() error { return held.Extend(ctx, b.job.TTL) })
	}
	b.told(o, lease.Release, held, func() error { return held.Release(ctx) })
	return nil
}

// told records a request for a lease. Only a success is a reply of the store: the library may also
// conclude by itself that a lease is lost.
func (b *librarian) told(o check.Op, kind lease.Kind, held *holdfast.Lease, do func() error) {
	o = check.Op{Client: o.Client, Name: o.Name, Kind: kind, LeaseID: o.LeaseID, Token: o.Token, TTL: o.TTL, Call: check.Now()}
	err := do()
	o.Return = check.Now()
	switch {
	case err != nil:
		o.Outcome = lease.Unknown
	case kind == lease.Extend:
		o.Deadline = check.Instant(held.Deadline())
	}
	b.job.Out(o)
}
