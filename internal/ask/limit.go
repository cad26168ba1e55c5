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
// The context is one of context.WithDeadlineCause, which is made when somebody
// first waits for it, or asks for a value, or when it has ended. Most requests to
// an engine in memory are answered before that: they need no timer, and the
// caller's context does not hear of them. A limit that passes while nobody looks
// ends the context at the next look, as it does if a timer fires late.
func LimitUntil(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
	l := &limited{caller: ctx, end: end}
	return l, l.cancel
}

// Parts tells of what a context of Limit or LimitUntil is made: it ends with the
// caller's, and at this instant. Whoever waits for both himself, and is done before it is
// stopped, spares the context that Done would make. It reports false for any other context.
func Parts(ctx context.Context) (caller context.Context, end time.Time, ok bool) {
	l, ok := ctx.(*limited)
	if !ok {
		return nil, time.Time{}, false
	}
	return l.caller, l.end, true
}

// A limited is a context that is made late. Package context finds what it needs of
// it, such as its cause, and where to enter those that are derived from it, by its
// Value and Done: they are those of the context that is made.
type limited struct {
	caller context.Context
	end    time.Time

	mu       sync.Mutex      // guards the rest; taken before those of package context
	canceled bool            // before it was made, and before the caller's ended
	made     context.Context // nil as long as nobody needs it
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

// Err implements context.Context. What it once said it goes on to say: it makes the
// context to say that it has ended.
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
