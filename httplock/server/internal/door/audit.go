package door

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// Audit logs an action that affects others, or its refusal. attrs must not contain
// a lease ID, a secret or a payload.
func (r *Request) Audit(what string, attrs ...slog.Attr) {
	who := cmp.Or(r.Caller, &caller.Caller{}) // the caller may be unknown
	all := []slog.Attr{
		slog.String("what", what), slog.String("caller", who.Name),
		slog.String("remote", r.RemoteAddr), slog.String("request", r.Pattern),
	}
	for _, name := range slices.Sorted(maps.Keys(who.Claims)) {
		all = append(all, slog.String(name, who.Claims[name]))
	}
	r.House.Log.LogAttrs(r.Context(), slog.LevelInfo, "audit", append(all, attrs...)...)
}
