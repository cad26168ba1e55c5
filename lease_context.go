package holdfast

import (
	"cmp"
	"context"
	"time"
)

// A leaseContext is a Lease as the context that ends with it. It makes a context with
// context.WithCancelCause when Done is called first, or Value for a key other than heldKey:
// most holders of short leases never do that.
//
// Package context uses Value and Done to find the cause of a context and the parent of derived
// ones. Both methods are those of the context made, so it works as if that one was passed.
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

// String names the context for people. Without it fmt would read the fields of the Lease, which
// other goroutines change.
func (c *leaseContext) String() string { return "context of the " + (*Lease)(c).String() }

// GoString is String.
func (c *leaseContext) GoString() string { return c.String() }

// make returns the context, which it makes at the first call. INVARIANT I3: a context that is
// made after the end of the lease has ended already; endContext ends an earlier one.
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
	if end != nil { // not under mu: end may call functions that use the lease
		end(cause)
	}
}

// endCauseLocked returns the cause with which the context of an ended lease ends.
func (l *Lease) endCauseLocked() error { return cmp.Or(l.lost, context.Canceled) }

// A heldKey is the key of the innermost *Lease of a context.
type heldKey struct{}

// LeaseFromContext returns the lease that ctx belongs to: the context of a
// lease, of the work in Do and Call, or one derived from either. Of nested leases it
// returns the innermost, and of the leases of AcquireAll the one whose name sorts last.
func LeaseFromContext(ctx context.Context) (*Lease, bool) {
	l := heldUnder(ctx)
	return l, l != nil
}

func heldUnder(ctx context.Context) *Lease {
	l, _ := ctx.Value(heldKey{}).(*Lease)
	return l
}

// attach derives from ctx a context that also ends with the lease. The caller must call stop to
// free it.
func (l *Lease) attach(ctx context.Context) (attached context.Context, stop func()) {
	attached, cancel := context.WithCancelCause(context.WithValue(ctx, heldKey{}, l))
	detach := context.AfterFunc(l.Context(), func() { cancel(context.Cause(l.Context())) })
	return attached, func() {
		detach()
		cancel(context.Canceled)
	}
}

// isAround reports whether ctx belongs to the work under the lease, or to a lease acquired in
// that work. The release itself ends such a context.
func (l *Lease) isAround(ctx context.Context) bool {
	for held := heldUnder(ctx); held != nil; held = held.outer {
		if held == l {
			return true
		}
	}
	return false
}
