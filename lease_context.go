package holdfast

import (
	"cmp"
	"context"
	"time"
)

// A leaseContext is a Lease as the context that ends with it. It is one of
// context.WithCancelCause, which is made at the first call of Done, or of Value for a key
// other than the lease's: most holders of short leases never do that.
// Package context finds its cause, and the context to which it adds derived ones, by its
// Value and Done: both are those of the context that is made.
type leaseContext Lease

// Deadline implements context.Context. The lease's moves; see Lease.Deadline.
func (c *leaseContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (c *leaseContext) Done() <-chan struct{} { return c.make().Done() }

// Err implements context.Context.
func (c *leaseContext) Err() error {
	l := (*Lease)(c)
	l.mu.Lock()
	live := l.ctx == nil && l.state == stateHeld
	l.mu.Unlock()
	if live {
		return nil
	}
	return c.make().Err()
}

// Value implements context.Context.
func (c *leaseContext) Value(key any) any {
	if key == (heldKey{}) {
		return (*Lease)(c)
	}
	return c.make().Value(key)
}

// String names the context for people. What fmt would read belongs to others.
func (c *leaseContext) String() string { return "context of the " + (*Lease)(c).String() }

// GoString is String.
func (c *leaseContext) GoString() string { return c.String() }

// make returns the context, which it makes at the first call. INVARIANT I3: after the
// end of the lease it has ended already; one that was made before is ended by
// endContext.
func (c *leaseContext) make() context.Context {
	l := (*Lease)(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.end = context.WithCancelCause(context.WithoutCancel(l.values))
		if l.state != stateHeld {
			l.end(l.endCauseLocked())
		}
	}
	return l.ctx
}

// endContext ends the context of a lease that has ended. The first cause counts.
func (l *Lease) endContext() {
	l.mu.Lock()
	end, cause := l.end, l.endCauseLocked()
	l.mu.Unlock()
	if end != nil { // not under mu: what waits for the end may look at the lease
		end(cause)
	}
}

// endCauseLocked returns the cause of the end of the context of a lease that has ended.
func (l *Lease) endCauseLocked() error { return cmp.Or(l.lost, context.Canceled) }

// A heldKey is the key of the innermost *Lease of a context.
type heldKey struct{}

// LeaseFromContext returns the lease that ctx belongs to: the context of a
// lease, of the work in Do and Call, or one derived from either.
func LeaseFromContext(ctx context.Context) (*Lease, bool) {
	l := heldUnder(ctx)
	return l, l != nil
}

func heldUnder(ctx context.Context) *Lease {
	l, _ := ctx.Value(heldKey{}).(*Lease)
	return l
}

// attach derives from ctx a context that also ends with the lease. stop frees
// it.
func (l *Lease) attach(ctx context.Context) (attached context.Context, stop func()) {
	attached, cancel := context.WithCancelCause(context.WithValue(ctx, heldKey{}, l))
	detach := context.AfterFunc(l.Context(), func() { cancel(context.Cause(l.Context())) })
	return attached, func() {
		detach()
		cancel(context.Canceled)
	}
}

// isAround reports whether ctx is of the work under the lease, or of a lease
// taken in it: such a context ends by the release itself.
func (l *Lease) isAround(ctx context.Context) bool {
	for held := heldUnder(ctx); held != nil; held = held.outer {
		if held == l {
			return true
		}
	}
	return false
}
