package httplock

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

const (
	// connectLimit bounds the time to connect to a server.
	connectLimit = 5 * time.Second

	idleLimit = 90 * time.Second
)

// A connectError is a failure to connect: nothing was sent.
type connectError struct{ err error }

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// conns makes the connections of an engine. When life ends, all connections are closed. That
// ends the requests on them, so no request needs a context for it.
type conns struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	life context.Context
}

// A conn is one connection, until it is closed.
type conn struct {
	net.Conn
	stop func() bool // stops watching conns.life
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// connect makes a connection. Every error is a connectError.
func (c *conns) connect(ctx context.Context, network, address string) (net.Conn, error) {
	dial := c.dial
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: idleLimit / 6}).DialContext
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	raw, err := dial(ctx, network, address)
	if err != nil {
		return nil, &connectError{err}
	}
	if c.life.Err() != nil {
		_ = raw.Close()
		return nil, &connectError{errClosed}
	}
	return &conn{raw, context.AfterFunc(c.life, func() { _ = raw.Close() })}, nil
}

// secured makes a connection with TLS.
func (c *conns) secured(ctx context.Context, network, address string, config *tls.Config) (net.Conn, error) {
	raw, err := c.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	made := tls.Client(raw, config)
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	if err := made.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, &connectError{err}
	}
	return made, nil
}

var errClosed = fmt.Errorf("the engine was %w", driver.ErrClosed)

// transport returns a transport for one server. It opens as many connections as there are
// requests under way, so that no request waits for the connection of another.
func (c *conns) transport(a address) *http.Transport {
	t := &http.Transport{
		MaxIdleConnsPerHost: 1 << 16, IdleConnTimeout: idleLimit, DisableCompression: true,
		DialContext: c.connect,
	}
	if a.socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return c.connect(ctx, "unix", a.socket) }
	}
	if a.url.Scheme == "https" {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if a.tls != nil {
			config = a.tls.Clone()
		}
		if config.ServerName == "" {
			config.ServerName = a.url.Hostname()
		}
		t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.secured(ctx, network, address, config)
		}
	}
	return t
}
