package door

import (
	"log/slog"
	"maps"
	"slices"
)

// Audit logs an action that affects others, or its refusal. attrs must not contain
// a lease ID, a secret or a payload.
func (r *Request) Audit(what string, attrs ...slog.Attr) {
	all := []slog.Attr{
		slog.String("what", what), slog.String("caller", r.callerName()),
		slog.String("remote", r.RemoteAddr), slog.String("request", r.Pattern),
	}
	if r.Caller != nil {
		for _, name := range slices.Sorted(maps.Keys(r.Caller.Claims)) {
			all = append(all, slog.String(name, r.Caller.Claims[name]))
		}
	}
	r.House.Log.LogAttrs(r.Context(), slog.LevelInfo, "audit", append(all, attrs...)...)
}

// callerName returns the name of the caller, if it is known.
func (r *Request) callerName() string {
	if r.Caller == nil {
		return ""
	}
	return r.Caller.Name
}
