package holdfast

import (
	"fmt"
	"log/slog"
	"strings"
)

// String names the lease for people: its lock, mode and fencing token. The lease
// ID is not for logs, because whoever knows it can release the lease.
func (l *Lease) String() string {
	return fmt.Sprintf("%s lease of %q, token %d", l.Mode(), l.name, l.token)
}

// GoString is String: what %#v would read belongs to other goroutines.
func (l *Lease) GoString() string { return l.String() }

// LogValue is for package log/slog; see String.
func (l *Lease) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", l.name), slog.String("mode", l.Mode().String()), slog.Uint64("token", l.token))
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

// LogValue is for package log/slog; see Lease.String.
func (ls *Leases) LogValue() slog.Value {
	var all []slog.Attr
	for _, l := range ls.all {
		all = append(all, slog.Any(l.name, l))
	}
	return slog.GroupValue(all...)
}

// String says who the client is: what Options.Holder says.
func (c *Client) String() string { return "holdfast client of " + c.opts.Holder.String() }

// GoString is String.
func (c *Client) GoString() string { return c.String() }

// MarshalText is String, for logs and JSON.
func (s OnceState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// nameOf returns the name of the value i of a type that counts from 0.
func nameOf(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}
