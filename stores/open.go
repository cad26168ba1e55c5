package stores

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock"
	"github.com/holdfast-locks/holdfast/internal/storeurl"
	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/pglock"
	"github.com/holdfast-locks/holdfast/redislock"
	"github.com/holdfast-locks/holdfast/sqlitelock"
)

const supported = "sqlite:///path/file.db, redis://host:port, redis+sentinel://host:port/master, redis+cluster://host:port, " +
	"quorum+redis://a,b,c, the same with rediss for TLS or with valkey, redis+unix:///path/redis.sock, postgres://host/database, http://host:port or " +
	"https://host:port of a holdfast server, http+unix:///path/holdfast.sock, or memory:"

// Open opens the store at rawURL as Dial does, and returns the engine itself, for a
// server, a dashboard, or several clients. The caller closes the engine, or
// the client that owns it. Open returns soon after ctx ends; an open engine goes on.
//
// A URL that is wrong, or of a kind that this version does not know, is
// driver.ErrInvalid. A server that cannot be reached is driver.ErrUnavailable; a quorum
// is opened even if none of its servers is there, and its requests fail then. A store
// that refuses this user is driver.ErrPermission. No error contains credentials.
func Open(ctx context.Context, rawURL string) (driver.Engine, error) {
	if rawURL == "" {
		return nil, fmt.Errorf("%w store: its URL is empty: use %s", driver.ErrInvalid, supported)
	}
	scheme, rest, found := strings.Cut(rawURL, ":")
	if !found || !storeurl.IsScheme(scheme) {
		return nil, fmt.Errorf("%w store: it is not a URL: use %s", driver.ErrInvalid, supported)
	}
	scheme = strings.ToLower(scheme)
	rawURL = scheme + ":" + rest
	switch storeurl.PlainScheme(scheme) {
	case "memory":
		return openMemory(rest)
	case "sqlite":
		return opened(sqlitelock.OpenURL(ctx, rawURL, nil))
	case "redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster", "redis+unix", "rediss+unix":
		return opened(redislock.Open(ctx, rawURL))
	case "quorum+redis", "quorum+rediss":
		return opened(openQuorum(rawURL))
	case "quorum+redis+unix", "quorum+rediss+unix":
		return nil, fmt.Errorf("%w: a quorum of sockets: its members would be on one host, and fail with it: use quorum+redis://a,b,c "+
			"with servers on hosts of their own, or one server", driver.ErrInvalid)
	case "postgres", "postgresql":
		return opened(pglock.Open(ctx, rawURL))
	case "http", "https", "http+unix":
		return opened(httplock.Open(ctx, rawURL, nil))
	case "mysql", "mariadb", "etcd", "consul", "zookeeper":
		return nil, fmt.Errorf("%w: this version keeps no locks in %s: use %s", driver.ErrInvalid, scheme, supported)
	}
	return nil, fmt.Errorf("%w: unknown scheme %q: use %s", driver.ErrInvalid, scheme, supported)
}

// openMemory opens memory: or memory:?history=1.
func openMemory(rest string) (driver.Engine, error) {
	query, found := strings.CutPrefix(rest, "?")
	params, err := url.ParseQuery(query)
	history := false
	for name, values := range params {
		if name != "history" || len(values) > 1 {
			err = errors.New("want history alone")
		} else {
			history, err = strconv.ParseBool(values[0])
		}
	}
	if err != nil || rest != "" && (!found || len(params) == 0) {
		return nil, fmt.Errorf("%w memory URL: want memory: or memory:?history=1", driver.ErrInvalid)
	}
	return opened(memlock.New(&memlock.Options{History: history}))
}

// opened turns a constructor's result into an interface that is nil on error.
func opened[E driver.Engine](engine E, err error) (driver.Engine, error) {
	if err != nil {
		return nil, err
	}
	return engine, nil
}
