package driver

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// What a store knows of locks is printed for people, and without the lease IDs in it,
// because whoever knows one can release the lease. In JSON they are left out too.

// String says for people who has the lock, and how many wait.
func (l Lock) String() string {
	s := fmt.Sprintf("%q: %s", l.Name, l.holders())
	switch l.QueueLength {
	case 0:
		return s
	case 1:
		return s + "; 1 waits"
	}
	return fmt.Sprintf("%s; %d wait", s, l.QueueLength)
}

func (l Lock) holders() string {
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
func (l Lock) GoString() string { return l.String() }

// LogValue is for package log/slog.
func (l Lock) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", l.Name), slog.String("mode", l.Mode.String()),
		slog.String("holders", l.holders()), slog.Int("queue", l.QueueLength))
}

// String says for people who has the lease, as Possession does, and its token.
func (h Holding) String() string {
	if h.Token == 0 {
		return h.Possession()
	}
	return fmt.Sprintf("%s, token %d", h.Possession(), h.Token)
}

// GoString is String, without the lease ID.
func (h Holding) GoString() string { return h.String() }

// String says for people who waits, for what and since when.
func (w Waiting) String() string {
	if w.Since < time.Millisecond {
		return fmt.Sprintf("%s waits for the %s lock", w.Holder, w.Mode)
	}
	return fmt.Sprintf("%s has waited for the %s lock for %s", w.Holder, w.Mode, Span(w.Since))
}

// GoString is String, without the lease ID.
func (w Waiting) GoString() string { return w.String() }

// String says for people whose lease it was, who broke it, and why.
func (b Broken) String() string {
	return fmt.Sprintf("lease of %s, token %d: %s, %s ago", b.Holder, b.Token, (&BrokenError{b.Author, b.Reason}).told(), Span(b.Ago))
}

// GoString is String, without the lease ID.
func (b Broken) GoString() string { return b.String() }
