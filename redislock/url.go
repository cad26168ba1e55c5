package redislock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
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

// Open connects to a store and returns when it has answered:
//
//	redis://[user:password@]host[:port][/db][?options]                one server
//	redis+sentinel://[user:password@]host[:port],…/master[/db][?options]   the master that sentinels name
//	redis+cluster://[user:password@]host[:port],…[?options]           a Redis Cluster
//	rediss://…, rediss+sentinel://…, rediss+cluster://…               the same over TLS
//
// The hosts of sentinels and of a cluster are those to begin with; the others
// are found through them. The options, each at most once:
//
//	prefix=TEXT         comes before the name in every key; see Options
//	client_name=TEXT    what the server shows of our connections; default holdfast
//	sentinel_user=NAME, sentinel_password=TEXT   where sentinels ask for others than the servers
//	tls_ca=FILE         PEM: who may have signed the servers' certificates, instead of the system's list
//	tls_cert=FILE, tls_key=FILE   PEM: our own certificate
//	tls_server_name=NAME   the name that the servers' certificates are for, if it is not their host
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

// ping asks whether the server serves: of a cluster, any node, because the
// client would send it to one that may be down while the others serve.
func (e *Engine) ping(ctx context.Context) error {
	nodes := map[string]rueidis.Client{"": e.client}
	if e.client.Mode() == rueidis.ClientModeCluster {
		nodes = e.client.Nodes()
	}
	answers := make(chan error, len(nodes))
	for _, node := range nodes {
		// It ends with the answer, after silence, or with the engine. Not with
		// ctx: that would spoil the connection for others who wait for it.
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), silence)
			defer cancel()
			_, err := e.ask(ctx, func() rueidis.RedisResult { return node.Do(ctx, node.B().Ping().Build()) })
			answers <- err
		}()
	}
	err := errors.New("no node is known")
	for range nodes {
		select {
		case err = <-answers:
		case <-ctx.Done():
			return fmt.Errorf("no answer from the server: %w", ctx.Err())
		}
		// Without the right to ping it knows the user, and locks need no more.
		if err == nil || errors.Is(err, driver.ErrPermission) {
			return nil
		}
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
