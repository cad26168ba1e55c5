package holdfast

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The printed forms contain no lease ID, because a client that knows one can release the lease.
// GoString, which %#v calls, is String: fmt would otherwise read the fields of a Lease or a
// Client, which other goroutines change. TestPrintingGivesNoLeaseID prints everything.

// String names the lease for people: its lock, mode and fencing token.
func (l *Lease) String() string {
	return fmt.Sprintf("%s lease of %q, token %d", l.Mode().Kind(), l.name, l.token)
}

// GoString is String.
func (l *Lease) GoString() string { return l.String() }

// MarshalText is String, for logs and JSON.
func (l *Lease) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// LogValue is for package log/slog; see String.
func (l *Lease) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", l.name), slog.String("mode", l.Mode().Kind()), slog.Uint64("token", l.token))
}

// String names the leases for people; see Lease.String.
func (ls *Leases) String() string {
	var all []string
	for _, l := range ls.all {
		all = append(all, l.String())
	}
	return strings.Join(all, "; ")
}

// GoString is String.
func (ls *Leases) GoString() string { return ls.String() }

// MarshalText is String, for logs and JSON.
func (ls *Leases) MarshalText() ([]byte, error) { return []byte(ls.String()), nil }

// LogValue is for package log/slog; see Lease.String.
func (ls *Leases) LogValue() slog.Value {
	var all []slog.Attr
	for _, l := range ls.all {
		all = append(all, slog.Any(l.name, l))
	}
	return slog.GroupValue(all...)
}

// String describes the client by Options.Holder.
func (c *Client) String() string {
	if c.check() != nil {
		return "no holdfast client"
	}
	return "holdfast client of " + c.opts.Holder.String()
}

// GoString is String.
func (c *Client) GoString() string { return c.String() }

// String names the run for people, by its lease, or by the result that it replays.
func (r *OnceRun) String() string {
	if r.Replayed() {
		return fmt.Sprintf("run of %q: %s", r.key, r.result)
	}
	return "run under the " + r.lease.String()
}

// GoString is String.
func (r *OnceRun) GoString() string { return r.String() }

// MarshalText is String, for logs and JSON.
func (r *OnceRun) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// LogValue is for package log/slog; see Lease.String.
func (r *OnceRun) LogValue() slog.Value {
	if r.Replayed() {
		return slog.GroupValue(slog.String("name", r.key), slog.Any("result", r.result))
	}
	return r.lease.LogValue()
}

// String has the length of the result, and not the result: it may be long, or secret.
func (r OnceResult) String() string {
	s := fmt.Sprintf("result of %d bytes, token %d", len(r.Value), r.Token)
	if r.Replayed {
		s += ", replayed"
	}
	return s
}

// GoString is String.
func (r OnceResult) GoString() string { return r.String() }

// LogValue is for package log/slog; see String.
func (r OnceResult) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("bytes", len(r.Value)), slog.Uint64("token", r.Token), slog.Bool("replayed", r.Replayed))
}

// String returns a text for people: the holder, or that the store does not answer, and the
// waiter's place in the queue.
func (s WaitState) String() string {
	text := fmt.Sprintf("%q: %s", s.Name, s.standing())
	if s.Place > 0 {
		text += fmt.Sprintf("; place %d of %d", s.Place, max(s.Place, s.Queue))
	}
	if s.Waited >= time.Millisecond {
		text += "; waited " + lockinfo.Span(s.Waited)
	}
	return text
}

// GoString is String.
func (s WaitState) GoString() string { return s.String() }

// LogValue is for package log/slog; see String.
func (s WaitState) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", s.Name), slog.String("state", s.standing()),
		slog.Int("place", s.Place), slog.Int("queue", s.Queue), slog.Duration("waited", s.Waited))
}

func (s WaitState) standing() string {
	if s.Outage != nil {
		return "the store does not answer: " + s.Outage.Error()
	}
	return driver.Blocker{Holder: s.Holder, Since: s.Since, ExpiresIn: s.ExpiresIn, Released: s.Released, Foreign: s.Foreign}.Possession()
}

// The names of types that count from 0.
var (
	keepAlives = []string{"on", "off"}
	onceStates = []string{"absent", "in progress", "done", "schedule"}
)

func (k KeepAlive) String() string { return nameOf(int(k), keepAlives) }

// MarshalText is String, for logs and JSON.
func (k KeepAlive) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText sets the value that MarshalText returned text for. For another text it
// returns ErrInvalid, and does not change k.
func (k *KeepAlive) UnmarshalText(text []byte) error {
	return named(k, text, keepAlives)
}

// named sets value to the index of text in names, or returns ErrInvalid.
func named[T ~int](value *T, text []byte, names []string) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("%w %T %q: want one of %v", ErrInvalid, *value, text, names)
	}
	*value = T(i)
	return nil
}

// UnmarshalText sets the state that MarshalText returned text for. For another text it returns
// ErrInvalid, and does not change s.
func (s *OnceState) UnmarshalText(text []byte) error {
	return named(s, text, onceStates)
}

// MarshalText is String, for logs and JSON.
func (s OnceState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// nameOf returns the name of the value i of a type that counts from 0.
func nameOf(i int, names []string) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}
