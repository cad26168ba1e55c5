// Package caller says who sends a request to a server, and what that caller may do.
//
// [Open] makes a [Source] of a file of tokens, users of this host, and rules for the
// tokens of issuers (OpenID Connect). A program that mounts a server can have a Source of
// its own, which looks at a certificate, a cookie or a header of a proxy that it trusts;
// [First] asks several.
//
// Whoever writes a Source decides about locks:
//
//   - What a request shows is compared in constant time, or by its digest.
//   - No answer, error or log has what was shown.
//   - The name of a caller is part of its lease IDs. Two programs that have the same name
//     can renew and release each other's locks; a caller whose name changes can no longer
//     release what it holds.
//   - A header counts only if nobody but the proxy can set it: the server must be out of
//     reach of others, by a unix socket or the network.
//   - Identify is called for each request, and waits for nobody for long: r.Context ends
//     when the client hangs up.
package caller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// A Caller is who sends requests.
type Caller struct {
	// Name tells callers apart: in lease IDs, limits and the audit log. Two that have
	// the same name are one.
	Name string

	Rights Rights

	// Prefixes are those of the names that the caller may use. Nil: every name.
	Prefixes []string

	// Direct says that no proxy can stand between the caller and the server: the
	// connection comes from a unix socket or from a loopback address.
	Direct bool
}

// May reports whether the caller has a right to a name.
func (c *Caller) May(right Rights, name string) bool {
	return c.Rights.Has(right) && c.uses(name)
}

// MayAll reports whether the caller has a right to every name that begins with prefix.
func (c *Caller) MayAll(right Rights, prefix string) bool { return c.May(right, prefix) }

func (c *Caller) uses(name string) bool {
	if c.Prefixes == nil {
		return true
	}
	for _, p := range c.Prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// Rights are what a caller may do with the names that it may use.
type Rights uint8

// The rights.
const (
	Acquire Rights = 1 << iota // take, renew, check and release locks
	Read                       // look at locks, their history and events
	Break                      // take locks away from others
	Once                       // do-once work
	OneTime                    // one-time tokens
	Admin                      // see others' lease IDs, prune, diagnose

	All = Acquire | Read | Break | Once | OneTime | Admin
)

var rightNames = []string{"acquire", "read", "break", "once", "onetime", "admin"}

// Has reports whether r has all of want.
func (r Rights) Has(want Rights) bool { return r&want == want }

// String names the rights, with commas between.
func (r Rights) String() string { return strings.Join(r.names(), ",") }

func (r Rights) names() (names []string) {
	for i, name := range rightNames {
		if r.Has(1 << i) {
			names = append(names, name)
		}
	}
	return names
}

// ParseRights returns the rights that have these names.
func ParseRights(names []string) (Rights, error) {
	var all Rights
next:
	for _, name := range names {
		for i, known := range rightNames {
			if name == known {
				all |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("unknown right %q: want some of %s", name, strings.Join(rightNames, ", "))
	}
	return all, nil
}

// A Source finds out who sends a request. A Source must be safe for concurrent use.
type Source interface {
	// Identify returns who sends r, or nil if the request shows nothing of the kind
	// that this Source knows, so that another may look. An error says that it shows
	// something, and that it is wrong; it must not contain what was shown. Whoever has
	// sent r sees the text of an error that is a Wrong, and of no other. An error that
	// wraps ErrUnavailable says that it is not known.
	//
	// The Caller must not be changed afterwards. The server sets Direct by itself.
	Identify(r *http.Request) (*Caller, error)
}

// Wrong says what is wrong with what a request shows, to whoever has sent it.
type Wrong string

func (w Wrong) Error() string { return string(w) }

// ErrUnavailable is wrapped by the error of a Source that cannot find out now who sends a
// request. The server answers 503 instead of 401, so that the client asks again.
var ErrUnavailable = errors.New("callers cannot be told now")

// First returns a Source that asks others in turn: the first that knows the caller, or
// finds that it shows something wrong, decides.
func First(sources ...Source) Source { return first(sources) }

type first []Source

func (all first) Identify(r *http.Request) (*Caller, error) {
	for _, s := range all {
		if c, err := s.Identify(r); c != nil || err != nil {
			return c, err
		}
	}
	return nil, nil
}

type key struct{}

// With returns a context of a request that c sends.
func With(ctx context.Context, c *Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns who sends the request of ctx. It is nil outside of requests.
func From(ctx context.Context) *Caller {
	c, _ := ctx.Value(key{}).(*Caller)
	return c
}
