package redislock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
)

const (
	// dialTimeout bounds making a connection, handshakes included.
	dialTimeout = 3 * time.Second
	// silence is how long a connection may owe an answer before it is given
	// up for a new one. It is only noticed by a ping, a second later.
	silence = 5 * time.Second
)

// Open connects to one server and returns when it has answered:
//
//	redis://[user:password@]host[:port][/db][?prefix=text]
//	rediss://…   the same over TLS
//
// A URL of another form is ErrInvalid, a server that cannot be reached or
// does not serve is ErrUnavailable, and one that refuses the user is
// ErrPermission. No error contains the password. Open returns soon after ctx
// ends. A read-only replica is found out by the first acquire only, because a
// replica may become a master, and is ErrUnavailable then.
func Open(ctx context.Context, rawURL string) (*Engine, error) {
	opts, keys, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	opts.DialCtxFn = dialer(life)
	client, err := newClient(ctx, opts)
	if err != nil {
		end()
		return nil, openError(ctx, err)
	}
	e := newEngine(client, keys, life, end)
	e.owned = true
	if err := e.ping(ctx); err != nil {
		_ = e.Close()
		return nil, openError(ctx, err)
	}
	return e, nil
}

// openError makes every failure of Open a definite one: nothing was asked of
// the store but whether it is there.
func openError(ctx context.Context, err error) error {
	for _, definite := range []error{driver.ErrUnavailable, driver.ErrPermission, driver.ErrInvalid, ctx.Err()} {
		if definite != nil && errors.Is(err, definite) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
}

// ping asks whether the server serves.
func (e *Engine) ping(ctx context.Context) error {
	_, err := e.ask(ctx, func() rueidis.RedisResult { return e.client.Do(ctx, e.client.B().Ping().Build()) })
	if errors.Is(err, driver.ErrPermission) {
		return nil // it knows the user, and locks need no right to ping
	}
	return err
}

// newClient connects, or gives up when ctx ends: the client itself does not
// look at a context there. A goroutine that is left behind ends with the
// client's own time limit and closes what it made.
func newClient(ctx context.Context, opts rueidis.ClientOption) (rueidis.Client, error) {
	type result struct {
		client rueidis.Client
		err    error
	}
	made := make(chan result, 1)
	go func() {
		client, err := rueidis.NewClient(opts)
		if err != nil && client != nil {
			client.Close()
		}
		made <- result{client, err}
	}()
	select {
	case r := <-made:
		if r.err != nil {
			return nil, clientError(r.err)
		}
		return r.client, nil
	case <-ctx.Done():
		go func() {
			if r := <-made; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// dialer returns a function that makes connections on the engine's behalf: a
// caller that gives up must not spoil the connection for the others who wait
// for it.
func dialer(life context.Context) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(_ context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(life, dialTimeout)
		defer cancel()
		var conn net.Conn
		var err error
		if config != nil {
			conn, err = (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, "tcp", addr)
		} else {
			conn, err = d.DialContext(ctx, "tcp", addr)
		}
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	}
}

// parseURL returns the client's options and the keys that a URL asks for. Its
// errors quote no part of the URL that may be a misplaced password.
func parseURL(rawURL string) (rueidis.ClientOption, keyspace, error) {
	invalid := func(format string, args ...any) (rueidis.ClientOption, keyspace, error) {
		return rueidis.ClientOption{}, keyspace{}, fmt.Errorf("%w redis URL: "+format, append([]any{driver.ErrInvalid}, args...)...)
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return invalid("it is malformed; write special characters of the password as %%XX, for example @ as %%40")
	}
	if u.Scheme != "redis" && u.Scheme != "rediss" {
		return invalid("want redis://host:port or rediss://host:port")
	}
	if u.Opaque != "" || u.Fragment != "" {
		return invalid("want %s://host:port/db?prefix=text", u.Scheme)
	}
	host, port := u.Hostname(), u.Port()
	if host == "" {
		return invalid("it names no host")
	}
	if port == "" {
		port = "6379"
	}
	db := 0
	if path := strings.TrimPrefix(u.Path, "/"); path != "" {
		if db, err = strconv.Atoi(path); err != nil || db < 0 {
			return invalid("the path must be the number of a database")
		}
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return invalid("its parameters are malformed")
	}
	for name, values := range query {
		if name != "prefix" || len(values) != 1 {
			return invalid("it has an unknown or repeated parameter; prefix is the only one, once")
		}
	}
	keys, err := newKeyspace(query.Get("prefix"))
	if err != nil {
		return invalid("%w", err)
	}
	password, ok := u.User.Password()
	if u.User != nil && !ok {
		return invalid("it has a user name but no password; want user:password@ or :password@")
	}
	opts := clientOptions(net.JoinHostPort(host, port))
	opts.Username, opts.Password, opts.SelectDB = u.User.Username(), password, db
	if u.Scheme == "rediss" {
		opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	}
	return opts, keys, nil
}

// clientOptions are the same for every server.
func clientOptions(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{addr},
		ClientName:  "holdfast",

		ForceSingleClient: true, // do not ask the server whether it is a cluster
		DisableRetry:      true, // a request is sent once: we repeat it, with a new deadline
		DisableCache:      true, // a cached answer says nothing about a lock
		AlwaysPipelining:  true, // a caller's deadline must not cost the connection that others use

		PipelineMultiplex: -1, // one connection: a cancel rarely overtakes its acquire

		Dialer:           net.Dialer{Timeout: dialTimeout},
		ConnWriteTimeout: silence,
		ClientSetInfo:    rueidis.DisableClientSetInfo,
	}
}
