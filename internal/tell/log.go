package tell

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/holdfast-locks/holdfast/observe"
)

// A count is how often something has happened that was not logged yet. An Observer that panics
// each time, or is always too slow, would otherwise fill the log.
type count struct {
	n      int
	warned time.Time
}

// due returns how many to log now, and counts anew. It returns 0 within warnAgain of the last
// warning.
func (c *count) due() (n int) {
	if now := time.Now(); c.n > 0 && (c.warned.IsZero() || now.Sub(c.warned) >= warnAgain) {
		n, *c = c.n, count{warned: now}
	}
	return n
}

// warnPanic logs a panic, or only counts it.
func (q *Queue) warnPanic(e *observe.Event, p any) {
	q.panics.n++
	if n := q.panics.due(); n > 0 {
		q.warn("holdfast: the Observer panicked: that costs it this event, and nothing else",
			slog.String("event", e.Kind.String()), slog.String("name", e.Name), slog.String("panic", fmt.Sprint(p)),
			slog.Int("panics", n), slog.String("stack", string(debug.Stack())))
	}
}

// warnDropped logs how many events were dropped.
func (q *Queue) warnDropped(n int) {
	if n > 0 {
		q.warn("holdfast: the Observer is too slow, or blocks: events were dropped", slog.Int("dropped", n))
	}
}

// warn logs one line. It ignores a panic of the log handler.
func (q *Queue) warn(text string, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	cmp.Or(q.logger, slog.Default()).LogAttrs(context.Background(), slog.LevelWarn, text, attrs...)
}

// NewLogger returns an Observer that logs lost leases and failed clean-ups, for programs without
// an Observer of their own too. A nil logger means slog.Default at the time of the event. Lease
// IDs are not logged, because a client that knows one can release the lease.
func NewLogger(logger *slog.Logger) observe.Observer {
	return func(e observe.Event) {
		var text string
		attrs := []slog.Attr{slog.String("name", e.Name)}
		switch e.Kind {
		case observe.Lost:
			text = "holdfast: a lease is lost: stop what it protects, because somebody else may have the lock"
			attrs = append(attrs, slog.String("mode", e.Mode.Kind()), slog.Uint64("token", e.Token), slog.Duration("held", e.Held))
		case observe.CleanupFailed:
			text = "holdfast: a lock could not be released: it stays closed until its lease expires, unless you break it"
		default:
			return
		}
		cmp.Or(logger, slog.Default()).LogAttrs(e.Context, slog.LevelWarn, text, append(attrs, slog.Any("error", e.Err))...)
	}
}
