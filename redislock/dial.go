package redislock

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"
)

const (
	// dialTimeout bounds connecting, including handshakes.
	dialTimeout = 3 * time.Second
	// dialAgain is how long race waits for a connection before it tries another in parallel. If the
	// first packet is lost, TCP sends the next after a second, and then after two.
	dialAgain = 400 * time.Millisecond
)

// connect connects to addr within the limit, over TLS unless config is nil.
func connect(ctx context.Context, addr string, d *net.Dialer, config *tls.Config, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := race(ctx, addr, d)
	if err != nil || config == nil {
		return conn, err
	}
	if config.ServerName == "" {
		host, _, _ := net.SplitHostPort(addr)
		config = config.Clone()
		config.ServerName = host
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// network returns the network of an address: unix for a path, otherwise tcp.
func network(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return "unix"
	}
	return "tcp"
}

// race dials repeatedly, at intervals of dialAgain, until one attempt succeeds or is refused. It
// drops the other attempts.
func race(ctx context.Context, addr string, d *net.Dialer) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result)
	try := func() { // ends with the race
		conn, err := d.DialContext(ctx, network(addr), addr)
		select {
		case results <- result{conn, err}:
		case <-ctx.Done():
			if err == nil {
				_ = conn.Close()
			}
		}
	}
	again := time.NewTicker(dialAgain)
	defer again.Stop()
	for {
		go try()
		select {
		case r := <-results:
			return r.conn, r.err
		case <-again.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("dial %s %s: no answer: %w", network(addr), addr, ctx.Err())
		}
	}
}
