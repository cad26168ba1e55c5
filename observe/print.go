package observe

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// String describes the event for people, without the lease ID and the values of the
// context: `refused "orders/42", waited 3s: held by deploy@web-3 (pid 812)`.
func (e Event) String() string {
	s := fmt.Sprintf("%s %q", e.Kind, e.Name)
	if e.Token != 0 {
		s += fmt.Sprintf(", token %d", e.Token)
	}
	for _, t := range e.times() {
		s += ", " + t.what + " " + lockinfo.Span(t.d)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// GoString is String.
func (e Event) GoString() string { return e.String() }

// LogValue is for package log/slog; see String.
func (e Event) LogValue() slog.Value {
	all := []slog.Attr{slog.String("kind", e.Kind.String()), slog.String("name", e.Name)}
	if e.Token != 0 {
		all = append(all, slog.String("mode", e.Mode.Kind()), slog.Uint64("token", e.Token))
	}
	for _, t := range e.times() {
		all = append(all, slog.Duration(t.what, t.d))
	}
	if e.Err != nil {
		all = append(all, slog.String("err", e.Err.Error()))
	}
	return slog.GroupValue(all...)
}

// A span is one of the durations of an event.
type span struct {
	what string
	d    time.Duration
}

// times returns the durations to be shown.
func (e Event) times() (all []span) {
	for _, t := range []span{{"waited", e.Waited}, {"held", e.Held}, {"took", e.Took}} {
		if t.d >= time.Millisecond {
			all = append(all, t)
		}
	}
	return all
}
