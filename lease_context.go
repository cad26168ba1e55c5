package holdfast

import "context"

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
	detach := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
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
