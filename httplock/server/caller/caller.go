// Package caller identifies the caller of a request to a server, and its rights.
//
// [Open] makes a [Source] of a file of tokens, users of this host, and rules for the
// tokens of issuers (OpenID Connect). A program that mounts a server can have a Source of
// its own, which looks at a certificate, a cookie or a header of a proxy that it trusts;
// [First] combines several.
//
// A Source decides about locks, so its author must ensure that
//
//   - Credentials are compared in constant time, or by their digests.
//   - No response, error or log contains credentials.
//   - The name of a caller is stable: it is part of its lease IDs. Two programs with the
//     same name can renew and release each other's locks. A caller whose name changes can
//     no longer release its locks.
//   - A header counts only if no client can set it: the server must be reachable through
//     the proxy alone, by a unix socket or the network.
//   - Identify, which is called for each request, returns soon: r.Context ends when the
//     client disconnects.
package caller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A Caller is a sender of requests.
type Caller struct {
	// Name distinguishes callers in lease IDs, limits and the audit log. Two callers with
	// the same name are one.
	Name string

	Rights Rights

	// Prefixes are the beginnings of the names that the caller may use. Nil: every name.
	Prefixes []string

	// Claims describe the caller further in the audit log: a job of a CI system, for
	// example. A File copies sub, repository, run_id, project_path, pipeline_id and
	// job_id from the token of an issuer, if the token has them.
	Claims map[string]string

	// Authorize, unless nil, decides about each Action that the rights allow. The client
	// sees the text of its error. Authorize is not called for requests of engines.
	Authorize func(Action) error
}

// An Action changes what others see of a lock, or of do-once work.
type Action struct {
	Kind   string // break, hold, release, forget
	Name   string // of the lock, or the do-once key
	Token  uint64 // of a break and a release: the lease that was seen
	Older  bool   // of a break: also the leases with smaller tokens
	Reason string // of a break, a hold and a release
}

// May reports whether the caller has a right to a name.
func (c *Caller) May(right Rights, name string) bool {
	return c.Rights.Has(right) && c.uses(name)
}

// MayAll reports whether the caller has a right to every name that begins with prefix.
func (c *Caller) MayAll(right Rights, prefix string) bool { return c.May(right, prefix) }

func (c *Caller) uses(name string) bool {
	return c.Prefixes == nil || slices.ContainsFunc(c.Prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
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
	for _, name := range names {
		i := slices.Index(rightNames, name)
		if i < 0 {
			return 0, fmt.Errorf("unknown right %q: want some of %s", name, strings.Join(rightNames, ", "))
		}
		all |= 1 << i
	}
	return all, nil
}

// A Source finds out who sends a request. A Source must be safe for concurrent use.
type Source interface {
	// Identify returns the caller of r, or nil if the request has no credentials of the
	// kind that this Source knows. For wrong credentials it returns an error, which must
	// not contain them. The client sees the text of an error that is a Wrong, and of no
	// other. An error that wraps ErrUnavailable means that the Source cannot find out.
	//
	// The Caller must not be changed afterwards.
	Identify(r *http.Request) (*Caller, error)
}

// Wrong is an error that tells the client what is wrong with its credentials.
type Wrong string

func (w Wrong) Error() string { return string(w) }

// ErrUnavailable is wrapped by the error of a Source that cannot find out now who sends a
// request. The server answers 503 instead of 401, so that the client retries.
var ErrUnavailable = errors.New("callers cannot be identified now")

// First returns a Source that tries others in turn. The first that knows the caller, or
// finds wrong credentials, decides.
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

// With returns a context for a request of c.
func With(ctx context.Context, c *Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the caller in the context of a request. It is nil outside of requests.
func From(ctx context.Context) *Caller {
	c, _ := ctx.Value(key{}).(*Caller)
	return c
}
