package ask

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrNoAnswer is the cause of a context that ended by a limit of this package. It deliberately is
// not a context error: the caller's context has not ended.
var ErrNoAnswer = errors.New("no answer within the request timeout")

// Limit returns a context for requests that ends after timeout, with the cause ErrNoAnswer.
func Limit(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return LimitUntil(ctx, time.Now().Add(timeout))
}

// LimitUntil is Limit with the instant at which the context ends.
//
// It calls context.WithDeadlineCause only at the first call of Done or Value, or of Err after
// the end. An engine in memory answers most requests before that. They then need no timer, and
// add no child to the caller's context. Without a timer the limit takes effect at the next
// call, as if a timer had fired late.
func LimitUntil(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
	l := &limited{caller: ctx, end: end}
	return l, l.cancel
}

// Parts returns the parts of a context that Limit or LimitUntil has returned: the caller's
// context, and the end of the limit. A function that waits for both itself saves the context
// that Done would make. It must return before the context is cancelled. For any other context
// ok is false.
func Parts(ctx context.Context) (caller context.Context, end time.Time, ok bool) {
	l, ok := ctx.(*limited)
	if !ok {
		return nil, time.Time{}, false
	}
	return l.caller, l.end, true
}

// A limited is a context that makes its real context when needed. Package context uses Value
// and Done to find the cause of a context and the parent of derived ones. Both methods are
// those of the real context.
type limited struct {
	caller context.Context
	end    time.Time

	mu       sync.Mutex      // guards the rest; taken before the mutexes of package context
	canceled bool            // cancel was called before made was needed, and before the caller's context ended
	made     context.Context // the real context; nil until it is needed
	stop     context.CancelFunc
}

// Deadline implements context.Context.
func (l *limited) Deadline() (time.Time, bool) {
	if end, ok := l.caller.Deadline(); ok && end.Before(l.end) {
		return end, true
	}
	return l.end, true
}

// Done implements context.Context.
func (l *limited) Done() <-chan struct{} { return l.make().Done() }

// Value implements context.Context.
func (l *limited) Value(key any) any { return l.make().Value(key) }

// Err implements context.Context. Once it has returned an error the error must not change, so it
// makes the real context before it returns one.
func (l *limited) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil && !l.canceled && l.caller.Err() == nil && time.Until(l.end) > 0 {
		return nil
	}
	return l.makeLocked().Err()
}

// String names the context for people. Without it fmt would read fields that other goroutines
// change.
func (l *limited) String() string { return "holdfast request until " + l.end.String() }

func (l *limited) make() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.makeLocked()
}

func (l *limited) makeLocked() context.Context {
	switch {
	case l.made != nil:
	case l.canceled: // even if the limit or the caller's context has ended since
		l.made, l.stop = context.WithCancel(context.WithoutCancel(l.caller))
		l.stop()
	default:
		l.made, l.stop = context.WithDeadlineCause(l.caller, l.end, ErrNoAnswer)
	}
	return l.made
}

// cancel ends the context. It makes the real context only if the caller's context has ended
// already, because that is the cause then.
func (l *limited) cancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil && l.caller.Err() == nil {
		l.canceled = true
		return
	}
	l.makeLocked()
	l.stop()
}
