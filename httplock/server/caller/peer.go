package caller

import (
	"context"
	"net"
	"net/http"
	"syscall"
)

type peerKey struct{}

// ConnContext is for http.Server.ConnContext: it finds out which user is at the other end
// of a unix socket, for a File that knows users. Only Linux supports this.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	raw, ok := conn.(syscall.Conn)
	if !ok || conn.LocalAddr().Network() != "unix" {
		return ctx
	}
	if uid, ok := peerUser(raw); ok {
		return context.WithValue(ctx, peerKey{}, uid)
	}
	return ctx
}

// userOf returns the user at the other end of the unix socket that r came through.
func userOf(r *http.Request) (uid uint32, ok bool) {
	uid, ok = r.Context().Value(peerKey{}).(uint32)
	return uid, ok
}

// OverUnix reports whether r came through a unix socket.
func OverUnix(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && local.Network() == "unix"
}

// PassedOn returns the name of a header that a proxy has added to r, or "". Many proxies add
// none, so "" does not rule out a proxy.
func PassedOn(r *http.Request) string {
	for _, name := range [...]string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip"} {
		if r.Header[name] != nil {
			return name
		}
	}
	return ""
}
