package server

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Configure sets what an http.Server needs that runs a Server: ConnContext, and time
// limits, so that idle clients are cut off. It sets neither ReadTimeout
// nor WriteTimeout, which would end streams: a Server gives each body 10 s to come, and
// each answer 30 s to be read. Call it before the http.Server is used.
func Configure(h *http.Server) {
	h.ReadHeaderTimeout = 10 * time.Second
	h.ReadTimeout, h.WriteTimeout = 0, 0
	h.IdleTimeout = 3 * time.Minute
	h.MaxHeaderBytes = 4 * headerLimit // above it net/http answers, without a problem
	h.DisableGeneralOptionsHandler = true
	if h.HTTP2 == nil {
		h.HTTP2 = &http.HTTP2Config{}
	}
	h.HTTP2.MaxConcurrentStreams = 250 // and so many bodies of a connection
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
