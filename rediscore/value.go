package rediscore

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
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
	s, released := strings.CutPrefix(s, "-")
	id, s, _ := strings.Cut(s, " ")
	id, proposer, proposed := strings.Cut(id, "/")
	fields, holder, ok := cutFields(s, 3) // TTL, token, grant
	if !ours || !ok || !lockinfo.LeaseID(id).Valid() || proposed && !lockinfo.LeaseID(proposer).Valid() ||
		fields[0] > form.MaxTTL.Milliseconds() || uint64(fields[1]) > driver.MaxToken {
		return value{}, false
	}
	return value{
		id: lockinfo.LeaseID(id), token: uint64(fields[1]), ttl: time.Duration(fields[0]) * time.Millisecond,
		granted: fields[2], holder: form.ReadHolder(holder), released: released,
	}, true
}

// parseGroup reports whether several may hold the lock by s, their group,
// and the limit of their permits, 0 for shared leases.
func parseGroup(s string) (group string, limit int, ok bool) {
	s, star := strings.CutPrefix(s, lua.DataLayout+" *")
	group, rest, _ := strings.Cut(s, " ")
	limit, err := strconv.Atoi(rest)
	return group, limit, star && lockinfo.LeaseID(group).Valid() && err == nil && limit >= 0
}
