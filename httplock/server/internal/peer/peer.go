// Package peer reports how much of the data written to a connection has arrived at its
// other end: all that a server can know about a silent client.
package peer

import (
	"context"
	"crypto/tls"
	"net"
)

type key struct{}

// With returns a context of the requests on conn. It is for http.Server.ConnContext.
func With(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, key{}, conn)
}

// Of returns the connection of the request of ctx, below TLS. It is nil if With was not called.
func Of(ctx context.Context) net.Conn {
	conn, _ := ctx.Value(key{}).(net.Conn)
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return conn
}

// Arrivals count the data that arrives at the other end of a connection. Arrived data were
// acknowledged: over TCP by the system at the other end of the connection, which may be
// a proxy, and on a unix socket by the program, which has read it.
type Arrivals struct {
	count func() (waiting int, acked uint64, ok bool)
	last  uint64 // of acked
}

// A teller is a connection that counts its arrivals itself.
type teller interface {
	Arrived() (waiting int, acked uint64, ok bool)
}

// ArrivalsOf returns the arrivals of conn.
func ArrivalsOf(conn net.Conn) *Arrivals {
	if c, ok := conn.(teller); ok {
		return &Arrivals{count: c.Arrived}
	}
	raw := rawOf(conn)
	return &Arrivals{count: func() (waiting int, acked uint64, ok bool) {
		if raw == nil {
			return 0, 0, false
		}
		return arrived(raw)
	}}
}

// Look reports whether everything written so far has arrived, or at least more than at the
// last call. known is false if the system cannot tell.
func (a *Arrivals) Look() (arrives, known bool) {
	waiting, acked, ok := a.count()
	more := acked > a.last
	a.last = acked
	return ok && (waiting == 0 || more), ok
}
