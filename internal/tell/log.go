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

// panics counts the panics of an Observer that were not logged yet. An Observer that panics each
// time would otherwise fill the log.
type panics struct {
	count  int
	warned time.Time
}

// warnPanic logs a panic, or only counts it if one was logged within warnAgain.
func (q *Queue) warnPanic(e *observe.Event, p any) {
	q.panics.count++
	if now := time.Now(); q.panics.warned.IsZero() || now.Sub(q.panics.warned) >= warnAgain {
		q.warn("holdfast: the Observer panicked: that costs it this event, and nothing else",
			slog.String("event", e.Kind.String()), slog.String("name", e.Name), slog.String("panic", fmt.Sprint(p)),
			slog.Int("panics", q.panics.count), slog.String("stack", string(debug.Stack())))
		q.panics = panics{warned: now}
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
