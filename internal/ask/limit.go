package ask

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrNoAnswer is the cause of our own time limits. It deliberately is not a
// context error: the caller's context has not ended.
var ErrNoAnswer = errors.New("no answer within the request timeout")

// Limit bounds requests, by a limit of our own.
func Limit(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return LimitUntil(ctx, time.Now().Add(timeout))
}

// LimitUntil is Limit with the instant at which it ends.
//
// The context is one of context.WithDeadlineCause, which is made at the first call of
// Done or Value, or of Err after its end. Most requests to an engine in memory are
// answered before that: they need no timer, and add no child to the caller's context.
// Without a timer the limit takes effect at the next call, as if a timer had fired
// late.
func LimitUntil(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
	l := &limited{caller: ctx, end: end}
	return l, l.cancel
}

// Parts returns the parts of a context of Limit or LimitUntil: it ends with the
// caller's, and at this instant. A function that waits for both itself, and is done before
// the context is stopped, saves the context that Done would make. Parts reports false for
// any other context.
func Parts(ctx context.Context) (caller context.Context, end time.Time, ok bool) {
	l, ok := ctx.(*limited)
	if !ok {
		return nil, time.Time{}, false
	}
	return l.caller, l.end, true
}

// A limited is a context that is made late. Package context finds its cause, and the
// context to which it adds derived ones, by its Value and Done: both are those of the
// context that is made.
type limited struct {
	caller context.Context
	end    time.Time

	mu       sync.Mutex      // guards the rest; taken before the mutexes of package context
	canceled bool            // before it was made, and before the caller's ended
	made     context.Context // nil until it is needed
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

// Err implements context.Context. Its result must not change again after an error: it
// makes the context before it returns one.
func (l *limited) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil && !l.canceled && l.caller.Err() == nil && time.Until(l.end) > 0 {
		return nil
	}
	return l.makeLocked().Err()
}

// String names the context for people. What fmt would read belongs to others.
func (l *limited) String() string { return "holdfast request until " + l.end.String() }

func (l *limited) make() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.makeLocked()
}

func (l *limited) makeLocked() context.Context {
	switch {
	case l.made != nil:
	case l.canceled: // whatever has ended since
		l.made, l.stop = context.WithCancel(context.WithoutCancel(l.caller))
		l.stop()
	default:
		l.made, l.stop = context.WithDeadlineCause(l.caller, l.end, ErrNoAnswer)
	}
	return l.made
}

// cancel ends the context. It makes it only if the caller's has ended before: that
// is the cause then.
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
