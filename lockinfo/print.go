package lockinfo

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// The state of locks is printed for people without the lease IDs in it, because a
// client that knows a lease ID can release the lease. JSON leaves them out too.

// String describes for people who has the lock, and how many wait.
func (l LockState) String() string {
	s := fmt.Sprintf("%q: %s", l.Name, l.holders())
	switch l.QueueLength {
	case 0:
		return s
	case 1:
		return s + "; 1 waits"
	}
	return fmt.Sprintf("%s; %d wait", s, l.QueueLength)
}

func (l LockState) holders() string {
	if len(l.Holders) == 0 {
		return "held by nobody"
	}
	var all []string
	for _, h := range l.Holders {
		all = append(all, h.String())
	}
	return strings.Join(all, ", ")
}

// GoString is String, without the lease IDs.
func (l LockState) GoString() string { return l.String() }

// LogValue is for package log/slog.
func (l LockState) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", l.Name), slog.String("mode", l.Mode.Kind()),
		slog.String("holders", l.holders()), slog.Int("queue", l.QueueLength))
}

// String describes for people who has the lease, as Possession does, and its token.
func (h Holding) String() string {
	if h.Token == 0 {
		return h.Possession()
	}
	return fmt.Sprintf("%s, token %d", h.Possession(), h.Token)
}

// GoString is String, without the lease ID.
func (h Holding) GoString() string { return h.String() }

// String describes for people who waits, for which mode and since when.
func (w Place) String() string {
	wants := w.Mode.String()
	if w.Mode.Limit() == 0 {
		wants = "the " + wants + " lock"
	}
	if w.Since < time.Millisecond {
		return fmt.Sprintf("%s waits for %s", w.Holder, wants)
	}
	return fmt.Sprintf("%s has waited for %s for %s", w.Holder, wants, Span(w.Since))
}

// GoString is String, without the lease ID.
func (w Place) GoString() string { return w.String() }

// String describes for people whose lease it was, who broke it, and why.
func (b Broken) String() string {
	return fmt.Sprintf("lease of %s, token %d: %s, %s ago", b.Holder, b.Token, (&BrokenError{b.Author, b.Reason}).text(), Span(b.Ago))
}

// GoString is String, without the lease ID.
func (b Broken) GoString() string { return b.String() }
