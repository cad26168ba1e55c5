package rediscore

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// A value is what the key of a lock holds; value.lua has the form.
type value struct {
	id       lockinfo.LeaseID
	token    uint64
	ttl      time.Duration // last given to the lease
	granted  int64         // us of the server's clock
	holder   lockinfo.Holder
	released bool // kept closed
}

// parseValue reports whether s is an exclusive lease in this layout, and what it
// says.
func parseValue(s string) (v value, ok bool) {
	s, ours := strings.CutPrefix(s, lua.DataLayout+" ")
	s, v.released = strings.CutPrefix(s, "-")
	id, s, _ := strings.Cut(s, " ")
	id, proposer, proposed := strings.Cut(id, "/")
	ttl, s, _ := strings.Cut(s, " ")
	token, s, _ := strings.Cut(s, " ")
	granted, holder, ok := strings.Cut(s, " ")
	v.id = lockinfo.LeaseID(id)
	if !ok || !ours || !v.id.Valid() || proposed && !lockinfo.LeaseID(proposer).Valid() {
		return value{}, false
	}
	var err error
	if v.token, err = form.ReadToken(token); err != nil {
		return value{}, false
	}
	ms, err := strconv.ParseUint(ttl, 10, 63)
	if err != nil || ms > uint64(form.MaxTTL.Milliseconds()) {
		return value{}, false
	}
	v.ttl = time.Duration(ms) * time.Millisecond
	if v.granted, err = strconv.ParseInt(granted, 10, 64); err != nil || v.granted < 0 {
		return value{}, false
	}
	v.holder = form.ReadHolder(holder)
	return v, true
}

// parseGroup reports whether several may hold the lock by s, their group,
// and the limit of their permits, 0 for shared leases.
func parseGroup(s string) (group string, limit int, ok bool) {
	s, star := strings.CutPrefix(s, lua.DataLayout+" *")
	group, rest, _ := strings.Cut(s, " ")
	limit, err := strconv.Atoi(rest)
	return group, limit, star && lockinfo.LeaseID(group).Valid() && err == nil && limit >= 0
}
