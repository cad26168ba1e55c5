package redislock

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A value is what the key of a lock holds; value.lua has the form.
type value struct {
	id       driver.LeaseID
	token    uint64
	ttl      time.Duration // last given to the lease
	holder   driver.Holder
	released bool // kept closed
}

// parseValue reports whether holdfast wrote s, and what it says.
func parseValue(s string) (v value, ok bool) {
	s, v.released = strings.CutPrefix(s, "-")
	id, s, _ := strings.Cut(s, " ")
	token, s, _ := strings.Cut(s, " ")
	ttl, holder, ok := strings.Cut(s, " ")
	v.id = driver.LeaseID(id)
	if !ok || !v.id.Valid() {
		return value{}, false
	}
	var err error
	if v.token, err = parseToken(token); err != nil {
		return value{}, false
	}
	ms, err := strconv.ParseUint(ttl, 10, 63)
	if err != nil || ms > uint64(maxTTL.Milliseconds()) {
		return value{}, false
	}
	v.ttl = time.Duration(ms) * time.Millisecond
	v.holder = parseHolder(holder)
	return v, true
}

// maxTTL bounds what parseValue takes for a TTL: the greatest that fits into
// a time.Duration, in whole milliseconds.
const maxTTL = (1<<63 - 1) / time.Millisecond * time.Millisecond

// parseGroup reports whether s says that several may hold the lock, and the
// limit of their permits, 0 for shared leases.
func parseGroup(s string) (limit int, ok bool) {
	s, star := strings.CutPrefix(s, "*")
	id, rest, _ := strings.Cut(s, " ")
	limit, err := strconv.Atoi(rest)
	return limit, star && driver.LeaseID(id).Valid() && err == nil && limit >= 0
}

// parseToken reads a token in decimal.
func parseToken(s string) (uint64, error) {
	token, err := strconv.ParseUint(s, 10, 64)
	if err != nil || token > driver.MaxToken {
		return 0, fmt.Errorf("%q is no token", s)
	}
	return token, nil
}

// parseHolder reads a holder. It is only for people, so one that cannot be
// read is no failure: the zero Holder says that nothing is known.
func parseHolder(s string) driver.Holder {
	var h driver.Holder
	if json.Unmarshal([]byte(s), &h) != nil {
		return driver.Holder{}
	}
	return h
}

func formatHolder(h driver.Holder) string {
	text, _ := json.Marshal(h) // strings and numbers: cannot fail
	return string(text)
}

// formatMS writes a duration as decimal milliseconds.
func formatMS(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}
