package door

import "log/slog"

// Audit writes what the caller has done to others, or was refused. attrs must not contain
// a lease ID, a secret or a payload.
func (r *Request) Audit(what string, attrs ...slog.Attr) {
	r.House.Log.LogAttrs(r.Context(), slog.LevelInfo, "audit", append([]slog.Attr{
		slog.String("what", what), slog.String("caller", r.callerName()),
		slog.String("remote", r.RemoteAddr), slog.String("request", r.Pattern),
	}, attrs...)...)
}

// callerName returns who asks, as far as that is known.
func (r *Request) callerName() string {
	if r.Caller == nil {
		return ""
	}
	return r.Caller.Name
}
