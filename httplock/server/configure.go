package server

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Configure prepares an http.Server to run a Server: it sets ConnContext, and time limits that
// cut off idle clients. It clears ReadTimeout and WriteTimeout, which would end streams: a
// Server itself gives a client 10 s to send a body, and 30 s to read a response. Call it
// before the http.Server is used.
func Configure(h *http.Server) {
	h.ReadHeaderTimeout = 10 * time.Second
	h.ReadTimeout, h.WriteTimeout = 0, 0
	h.IdleTimeout = 3 * time.Minute
	h.MaxHeaderBytes = 4 * headerLimit // above it net/http refuses the request, without a problem
	h.DisableGeneralOptionsHandler = true
	if h.HTTP2 == nil {
		h.HTTP2 = &http.HTTP2Config{}
	}
	h.HTTP2.MaxConcurrentStreams = 250 // which also bounds the bodies of a connection
	h.HTTP2.SendPingTimeout = 15 * time.Second
	h.HTTP2.WriteByteTimeout = 30 * time.Second
	next := h.ConnContext
	h.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if ctx = ConnContext(ctx, conn); next != nil {
			ctx = next(ctx, conn)
		}
		return ctx
	}
}
