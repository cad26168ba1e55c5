// Package store opens the stores that holdfast knows by URL.
package store

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/sqlitelock"
)

const supported = "sqlite:///path/file.db, redis://host:port, redis+sentinel://host:port/master, redis+cluster://host:port, " +
	"quorum+redis://a,b,c, the same with rediss for TLS or with valkey, redis+unix:///path/redis.sock, or memory:"

// Open opens the store, and makes the directory of the user's own. See Open for the
// errors.
func (c Choice) Open(ctx context.Context) (driver.Engine, error) {
	if c.Dir != "" {
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("%w: the directory of your own store: %w; name another with --store", driver.ErrInvalid, err)
		}
	}
	if c.System {
		return opened(sqlitelock.OpenURLWith(ctx, c.URL, &sqlitelock.Options{System: true}))
	}
	return Open(ctx, c.URL)
}

// Open opens the store at rawURL. An error that wraps driver.ErrInvalid means that
// the URL is wrong or of a kind that this version does not know. Errors contain no
// credentials. A quorum is opened even if none of its members is there: its requests
// fail then.
func Open(ctx context.Context, rawURL string) (driver.Engine, error) {
	scheme, _, found := strings.Cut(rawURL, ":")
	if !found {
		return nil, fmt.Errorf("%w store: it is not a URL: use %s", driver.ErrInvalid, supported)
	}
	switch scheme = strings.ToLower(scheme); plainScheme(scheme) {
	case "memory":
		return memlock.New(), nil
	case "sqlite":
		return opened(sqlitelock.OpenURL(ctx, rawURL))
	case "redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster", "redis+unix", "rediss+unix":
		return opened(redislock.Open(ctx, rawURL))
	case "quorum+redis", "quorum+rediss":
		return opened(openQuorum(rawURL))
	case "quorum+redis+unix", "quorum+rediss+unix":
		return nil, fmt.Errorf("%w: a quorum of sockets: its members would be on one host, and fail with it: use quorum+redis://a,b,c "+
			"with servers on hosts of their own, or one server", driver.ErrInvalid)
	case "http", "https":
		return nil, fmt.Errorf("%w: this version knows no servers of its own, at %s: use %s", driver.ErrInvalid, scheme, supported)
	}
	return nil, fmt.Errorf("%w: unknown scheme %q: use %s", driver.ErrInvalid, scheme, supported)
}

// plainScheme returns a scheme in small letters, with redis where it says valkey,
// which is another name for the same.
func plainScheme(scheme string) string {
	return strings.Replace(strings.ToLower(scheme), "valkey", "redis", 1)
}

// opened turns a constructor's result into an interface that is nil on error.
func opened[E driver.Engine](engine E, err error) (driver.Engine, error) {
	if err != nil {
		return nil, err
	}
	return engine, nil
}

// IsNew reports whether an open store is a file that was not there before.
func IsNew(engine driver.Engine) bool {
	file, ok := engine.(*sqlitelock.Engine)
	return ok && file.Created()
}

// Public returns rawURL without credentials, to be shown and handed on.
func Public(rawURL string) string {
	public, _ := strip(rawURL)
	return public
}

// hasCredentials reports whether rawURL has more in it than may be shown.
func hasCredentials(rawURL string) bool {
	_, stripped := strip(rawURL)
	return stripped
}

// HasPassword reports whether rawURL has a password in it, which others must not
// see.
func HasPassword(rawURL string) bool {
	p, ok := split(rawURL)
	_, password, _ := strings.Cut(strings.TrimSuffix(p.user, "@"), ":")
	return ok && (password != "" || strings.Contains(p.rest, "sentinel_password="))
}

// strip returns rawURL without credentials, and whether it had any, or may have
// had: of a malformed one only the scheme is left, and nothing of what is not one.
func strip(rawURL string) (public string, stripped bool) {
	p, ok := split(rawURL)
	if !ok {
		scheme, rest, isURL := strings.Cut(rawURL, ":")
		if !isURL {
			return "", rawURL != "" // whatever it is
		}
		return scheme + ":", rest != ""
	}
	u, err := url.Parse(p.rest)
	if err != nil || strings.HasPrefix(strings.TrimPrefix(plainScheme(p.scheme), "quorum+"), "redis") && strings.Contains(p.rest, "@") {
		return p.scheme + ":", true // it may be a password with special characters
	}
	stripped = p.user != ""
	if q := u.Query(); q.Has("sentinel_user") || q.Has("sentinel_password") {
		q.Del("sentinel_user")
		q.Del("sentinel_password")
		u.RawQuery, stripped = q.Encode(), true
	}
	return p.scheme + "://" + p.hosts + u.String(), stripped
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
