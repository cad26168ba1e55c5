package rediscore

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/lua"
)

// A value is the content of a lock's key; value.lua describes the form.
type value struct {
	id       lockinfo.LeaseID
	token    uint64
	ttl      time.Duration // as of the last acquire or extend
	granted  int64         // us of the server's clock
	holder   lockinfo.Holder
	released bool // the lease has ended and the name is kept closed
}

// parseValue parses an exclusive lease. It reports false if s is not one in this layout.
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
		granted: fields[2], holder: holders.Read(holder), released: released,
	}, true
}

// parseGroup parses the value of a lock that several may hold: the group, and the limit of its
// permits, 0 for shared leases. It reports false if s is not one.
func parseGroup(s string) (group string, limit int, ok bool) {
	s, star := strings.CutPrefix(s, lua.DataLayout+" *")
	group, rest, _ := strings.Cut(s, " ")
	limit, err := strconv.Atoi(rest)
	return group, limit, star && lockinfo.LeaseID(group).Valid() && err == nil && limit >= 0
}

// An about is what break.lua stores for people: in a record, and, with the name, in a message to
// holders.
type about struct {
	Name   string `json:"name,omitempty"`
	Author string `json:"author"`
	Reason string `json:"reason,omitempty"`
}

func (a about) String() string {
	text, _ := json.Marshal(a) // strings only: cannot fail
	return string(text)
}

// A brokenLease is the record of a broken lease.
type brokenLease struct {
	lockinfo.Broken
	at, granted int64 // us
}

// parseLine reads one record; break.lua describes the form. now is the server's clock in ms.
func parseLine(line string, now int64) (b brokenLease, ok bool) {
	head, rest, _ := strings.Cut(line, "\t")
	text, holder, ok := strings.Cut(rest, "\t")
	id, head, _ := strings.Cut(head, " ")
	lease, head, _ := strings.Cut(head, " ")
	fields, _, ok2 := cutFields(head+" ", 6)
	var a about
	if !ok || !ok2 || json.Unmarshal([]byte(text), &a) != nil {
		return b, false
	}
	return brokenLease{Broken: lockinfo.Broken{
		ID: lockinfo.LeaseID(id), LeaseID: lockinfo.LeaseID(lease), Token: uint64(fields[0]), Mode: readMode(fields[3], fields[4], fields[1]),
		Holder: holders.Read(holder), Author: a.Author, Reason: a.Reason,
		Ago: time.Duration(min(max(now-fields[2], 0), form.MaxTTL.Milliseconds())) * time.Millisecond,
	}, at: fields[2] * 1000, granted: fields[5]}, true
}

// groupMode returns the mode of a lease in a group with this limit.
func groupMode(permits, limit int) lockinfo.Mode {
	if limit == 0 {
		return lockinfo.Shared
	}
	return lockinfo.Permits(permits, limit)
}

// readMode reads the three fields of a mode.
func readMode(kind, limit, permits int64) lockinfo.Mode {
	return modes.Fields{Kind: modes.Kind(kind), Limit: int(limit), Permits: int(permits)}.Mode()
}

// cutFields reads n numbers, each followed by a space, and returns the rest.
func cutFields(s string, n int) (fields []int64, rest string, ok bool) {
	for range n {
		field, after, found := strings.Cut(s, " ")
		v, err := strconv.ParseInt(field, 10, 64)
		if !found || err != nil || v < 0 {
			return nil, "", false
		}
		fields, s = append(fields, v), after
	}
	return fields, s, true
}
