// Package store opens the stores that holdfast knows by URL.
package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/sqlitelock"
)

const supported = "sqlite:///path/file.db, redis://host:port, redis+sentinel://host:port/master, redis+cluster://host:port, quorum+redis://a,b,c, the same with rediss, memory:"

// Open opens the store at rawURL. An error that wraps driver.ErrInvalid or
// driver.ErrUnsupported means that the URL is wrong or of a kind that this
// version does not know. Errors contain no credentials. A quorum is opened even
// if none of its members is there: its requests fail then.
func Open(ctx context.Context, rawURL string) (driver.Engine, error) {
	scheme, _, found := strings.Cut(rawURL, ":")
	if !found {
		return nil, fmt.Errorf("%w store: it is not a URL; use one of %s", driver.ErrInvalid, supported)
	}
	switch scheme = strings.ToLower(scheme); scheme {
	case "memory":
		return memlock.New(), nil
	case "sqlite":
		return opened(sqlitelock.OpenURL(ctx, rawURL))
	case "redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster":
		return opened(redislock.Open(ctx, rawURL))
	case "quorum+redis", "quorum+rediss":
		return opened(openQuorum(rawURL))
	case "http", "https":
		return nil, fmt.Errorf("store %s: is not supported in this version; use one of %s: %w", scheme, supported, driver.ErrUnsupported)
	}
	return nil, fmt.Errorf("%w store: unknown scheme %q; use one of %s", driver.ErrInvalid, scheme, supported)
}

// opened turns a constructor's result into an interface that is nil on error.
func opened[E driver.Engine](engine E, err error) (driver.Engine, error) {
	if err != nil {
		return nil, err
	}
	return engine, nil
}

// Public returns rawURL without credentials, to be shown and handed on.
func Public(rawURL string) string {
	p, ok := split(rawURL)
	if !ok {
		scheme, _, _ := strings.Cut(rawURL, ":")
		return scheme + ":"
	}
	u, err := url.Parse(p.rest)
	if err != nil || strings.HasPrefix(strings.TrimPrefix(p.scheme, "quorum+"), "redis") && strings.Contains(p.rest, "@") {
		return p.scheme + ":" // it may be a password with special characters
	}
	if q := u.Query(); q.Has("sentinel_user") || q.Has("sentinel_password") {
		q.Del("sentinel_user")
		q.Del("sentinel_password")
		u.RawQuery = q.Encode()
	}
	return p.scheme + "://" + p.hosts + u.String()
}

// parts are those of scheme://user:password@a,b,c/path?query, joined as they
// stand there. Several hosts are not part of a standard URL: url.Parse does not
// take them.
type parts struct {
	scheme string
	user   string // with the @ behind it
	hosts  string
	rest   string
}

// split takes a URL to pieces, if it has an authority.
func split(rawURL string) (p parts, ok bool) {
	p.scheme, p.hosts, ok = strings.Cut(rawURL, "://")
	if i := strings.IndexAny(p.hosts, "/?#"); i >= 0 {
		p.hosts, p.rest = p.hosts[:i], p.hosts[i:]
	}
	if i := strings.LastIndexByte(p.hosts, '@') + 1; i > 0 {
		p.user, p.hosts = p.hosts[:i], p.hosts[i:]
	}
	return p, ok
}

// Default returns the URL of the embedded store of this user, below stateHome
// ($XDG_STATE_HOME) or else ~/.local/state, and makes its directory.
func Default(stateHome string) (string, error) {
	if !filepath.IsAbs(stateHome) { // which the XDG specification says to ignore
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("there is no home directory for the default store: set HOME, or name a store with --store")
		}
		stateHome = filepath.Join(home, ".local", "state")
	}
	dir := filepath.Join(stateHome, "holdfast")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("default store: %w; name another with --store", err)
	}
	return (&url.URL{Scheme: "sqlite", Path: filepath.Join(dir, "locks.db")}).String(), nil
}
