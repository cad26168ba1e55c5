package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// silence is how long a connection may owe a reply before it is given up for a new one in any case.
// Only a ping detects it, so it takes up to a second longer.
const silence = 5 * time.Second

// Open connects to a store. It returns when the store has replied and accepted the user:
//
//	redis://[user:password@]host[:port][/db][?options]                one server
//	redis+sentinel://[user:password@]host[:port],…/master[/db][?options]   the master that sentinels name
//	redis+cluster://[user:password@]host[:port],…[?options]           a Redis Cluster
//	rediss://…, rediss+sentinel://…, rediss+cluster://…               the same over TLS
//	redis+unix://[user:password@]/path/redis.sock[?db=N&options]      one server of this host, by its socket
//
// valkey may replace redis in a scheme, and valkeys may replace rediss: nothing depends on the
// server's name.
//
// The hosts of sentinels and of a cluster are the first to try; Open finds the others through them.
// Each option may occur once:
//
//	prefix=TEXT         comes before the name in every key; see Options
//	foreign=0          only holdfast takes these locks; see Options.NoForeignClients
//	token_memory=D      how long the token of an unused name is remembered, such as 1h; see Options
//	client_name=TEXT    the name of our connections at the server; default holdfast
//	tell_deletions=1    the server reports when a lock that we hold is deleted; see Options
//	history=1           what happens to each name is recorded and published; see Options.History
//	sentinel_user=NAME, sentinel_password=TEXT   if the sentinels need other credentials than the servers
//	tls_ca=FILE         PEM: the authorities that sign the servers' certificates, instead of the system's list
//	tls_cert=FILE, tls_key=FILE   PEM: our own certificate
//	tls_server_name=NAME   the name that the servers' certificates are for, if it is not their host
//
// A malformed URL is ErrInvalid, a server that cannot be reached is ErrUnavailable, and one that
// refuses the user is ErrPermission. No error contains the password. Open returns soon after ctx
// ends. If a server cannot serve yet, because it loads its data or is a read-only replica, Open
// succeeds and the first request fails with ErrUnavailable. If ctx has already ended Open only
// checks the URL.
func Open(ctx context.Context, rawURL string) (*Engine, error) {
	opts, set, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	conn, err := dialStore(ctx, opts, maxSilence(opts))
	if err != nil {
		return nil, openError(ctx, err)
	}
	return newEngine(conn, &set) // parseURL has checked the options
}

// dialOne connects to one server of a URL, or to one of its sentinels.
func dialOne(ctx context.Context, opts rueidis.ClientOption, addr string, sentinel bool) (*conn, error) {
	opts.InitAddress, opts.ForceSingleClient = []string{addr}, true
	if sentinel {
		opts.Username, opts.Password, opts.SelectDB = opts.Sentinel.Username, opts.Sentinel.Password, 0
	}
	opts.Sentinel = rueidis.SentinelOption{}
	return dialStore(ctx, opts, 0)
}

// dialStore connects to the servers in opts. If ctx has ended, it dials none.
func dialStore(ctx context.Context, opts rueidis.ClientOption, limit time.Duration) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	detector := newDetector(limit)
	opts.DialCtxFn = detector.dial
	client, err := newClient(ctx, opts)
	if err != nil {
		detector.close()
		return nil, err
	}
	c := newConn(client, detector)
	if c.Mode() == rediscore.OneServer {
		for range rediscore.MostDirect {
			c.lanes = append(c.lanes, newLane(detector, opts))
		}
	}
	return c, nil
}

// maxSilence returns the limit of the detector for the client's options.
func maxSilence(opts rueidis.ClientOption) time.Duration {
	if opts.Sentinel.MasterSet == "" {
		return 0
	}
	return sentinelSilence
}

// openError makes every failure of Open a definite error, because Open only asks whether the store
// is there.
func openError(ctx context.Context, err error) error {
	if driver.Definite(err) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
}

// newClient connects, or gives up when ctx ends, which rueidis.NewClient ignores. A goroutine that
// remains then ends within the client's own time limit and closes the client.
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
