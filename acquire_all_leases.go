package holdfast

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Leases are the leases of several names that were acquired together. They are valid as long
// as each of them is. The holder must call Release. All methods are safe for concurrent use.
type Leases struct {
	all    []*Lease // in the order of their names; at least one
	byName map[string]*Lease
	ctx    context.Context // ends when the first lease does
	end    context.CancelCauseFunc
}

func newLeases(ctx context.Context, all []*Lease) *Leases {
	ls := &Leases{all: all, byName: map[string]*Lease{}}
	// The last lease is the innermost.
	innermost := context.WithValue(context.WithoutCancel(ctx), heldKey{}, all[len(all)-1])
	ls.ctx, ls.end = context.WithCancelCause(innermost)
	for _, l := range all {
		ls.byName[l.name] = l
		context.AfterFunc(l.Context(), func() { ls.end(context.Cause(l.Context())) })
	}
	return ls
}

// Names returns the names, sorted.
func (ls *Leases) Names() []string { return slices.Sorted(maps.Keys(ls.byName)) }

// Lease returns the lease of one name, or nil if it is not among them.
func (ls *Leases) Lease(name string) *Lease { return ls.byName[name] }

// Token returns the fencing token of one name, or 0 if it is not among them.
// Each name has a token of its own.
func (ls *Leases) Token(name string) uint64 {
	if l := ls.byName[name]; l != nil {
		return l.token
	}
	return 0
}

// Context ends when the first of the leases does; see Lease.Context.
func (ls *Leases) Context() context.Context { return ls.ctx }

// Deadline returns the earliest deadline; see Lease.Deadline.
func (ls *Leases) Deadline() time.Time {
	first := ls.all[0].Deadline()
	for _, l := range ls.all[1:] {
		first = earlier(first, l.Deadline())
	}
	return first
}

// Remaining returns how long all leases may be trusted from now on without
// another renewal; 0 if one of them has ended.
func (ls *Leases) Remaining() time.Duration {
	left := ls.all[0].Remaining()
	for _, l := range ls.all[1:] {
		left = min(left, l.Remaining())
	}
	return left
}

// Valid reports whether all leases may be trusted at this instant; see
// Lease.Valid.
func (ls *Leases) Valid() bool {
	for _, l := range ls.all {
		if !l.Valid() {
			return false
		}
	}
	return true
}

// Heartbeat tells the keep-alive that the work goes on; see
// AcquireOptions.StallAfter.
func (ls *Leases) Heartbeat() {
	for _, l := range ls.all {
		l.Heartbeat()
	}
}

// Extend makes each lease last at least until ttl after the call reached the
// store, in one request. Its error is the error of the first lease that was not
// extended; see Lease.Extend.
func (ls *Leases) Extend(ctx context.Context, ttl time.Duration) error {
	for _, l := range ls.all {
		if err := l.checkExtend(ttl); err != nil {
			return opError("extend", l.name, err)
		}
	}
	return extendAll(ctx, ls.all, ceilMS(ttl))
}

// Release ends Context, releases all leases, as Lease.Release does, and
// returns the errors of those that failed, joined.
func (ls *Leases) Release(ctx context.Context) error {
	for _, l := range ls.all {
		if !l.Valid() {
			ls.end(context.Cause(l.Context())) // ls.ctx may not have ended yet
		}
	}
	ls.end(context.Canceled)
	return releaseAll(ctx, ls.all)
}

// releaseAll releases the leases concurrently.
func releaseAll(ctx context.Context, leases []*Lease) error {
	errs := make([]error, len(leases))
	var wg sync.WaitGroup // one goroutine per lease; each writes its own element
	for i, l := range leases {
		wg.Go(func() { errs[i] = l.Release(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
