package redislock

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Inspect implements driver.Engine.
func (e *Engine) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	if err := e.enter(ctx, name); err != nil {
		return driver.Lock{}, err
	}
	found, err := e.inspect(ctx, []string{name}, true)
	if err != nil {
		return driver.Lock{}, err
	}
	return found[0].lock, found[0].err
}

// An inspection is what the store knows of one name, or why it cannot say.
type inspection struct {
	lock driver.Lock
	err  error
}

// inspect asks for names that one script call may treat together, with their
// places or only the number of these.
func (e *Engine) inspect(ctx context.Context, names []string, places bool) ([]inspection, error) {
	keys := make([]string, 0, 6*len(names))
	for _, name := range names {
		keys = append(keys, e.keys.state(name)[:6]...)
	}
	which := "0"
	if places {
		which = "1"
	}
	reply, err := e.exec(ctx, e.scripts.inspect, keys, []string{which})
	if err != nil {
		return nil, err
	}
	items, ok := reply.([]any)
	if !ok || len(items) != len(names) {
		return nil, errMalformed("inspect", reply)
	}
	found := make([]inspection, len(names))
	for i, name := range names {
		found[i].lock, found[i].err = parseInspect(name, items[i])
	}
	return found, nil
}

// parseInspect reads what inspect.lua says of one name.
func parseInspect(name string, reply any) (driver.Lock, error) {
	if text, ok := reply.(string); ok {
		return driver.Lock{}, serverError(text)
	}
	items, _ := reply.([]any)
	if len(items) != 7 {
		return driver.Lock{}, errMalformed("inspect", reply)
	}
	now, ok1 := items[0].(int64)
	left, ok2 := items[1].(int64)
	text, ok3 := items[2].(string)
	last, ok4 := items[3].(string)
	leases, ok5 := parseEntries(items[4])
	places, ok6 := parseEntries(items[5])
	length, ok7 := items[6].(int64)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || !ok7 {
		return driver.Lock{}, errMalformed("inspect", reply)
	}
	lock := driver.Lock{Name: name, QueueLength: int(length)}
	if last != "" {
		token, err := parseToken(last)
		if err != nil {
			return driver.Lock{}, errFence()
		}
		lock.LastToken = token
	}
	const free = -2
	if left != free {
		describeHolders(&lock, text, left, leases, now)
	}
	for _, e := range places {
		if w, ok := waiting(e, now); ok {
			lock.Queue = append(lock.Queue, w)
		}
	}
	return lock, nil
}

// describeHolders sets what the lock's key, with its expiry, and its leases
// say.
func describeHolders(lock *driver.Lock, text string, left int64, leases []entry, now int64) {
	limit, ok := parseGroup(text)
	if !ok || len(leases) == 0 {
		lock.Holders = []driver.Holding{holding(text, left)}
		return
	}
	if lock.Mode = driver.Shared; limit > 0 {
		lock.Mode, lock.Limit = driver.Semaphore, limit
	}
	for _, e := range leases {
		if h, ok := member(e, now); ok {
			lock.Holders = append(lock.Holders, h)
		}
	}
	slices.SortFunc(lock.Holders, func(a, b driver.Holding) int { return cmp.Compare(a.Token, b.Token) })
}

// holding describes the lease that a lock's value and its expiry say.
func holding(text string, left int64) driver.Holding {
	v, ok := parseValue(text)
	if !ok {
		return driver.Holding{ExpiresIn: expiresIn(left)}
	}
	if ttl := v.ttl.Milliseconds(); left < 0 || left > ttl {
		left = ttl // as the next acquire will clamp it
	}
	return driver.Holding{LeaseID: v.id, Token: v.token, Holder: v.holder, ExpiresIn: expiresIn(left), Released: v.released}
}

// An entry is a member of a sorted set with its record: a lease or a place.
type entry struct {
	name   string
	ends   int64 // ms of the server's clock
	record string
}

// left returns how long an entry lasts, at most ttl, as the next request for
// the name will clamp it.
func (e entry) left(now, ttl int64) time.Duration { return expiresIn(max(min(e.ends-now, ttl), 0)) }

// parseEntries reads names, ends and records, one after the other.
func parseEntries(reply any) ([]entry, bool) {
	items, ok := reply.([]any)
	if !ok || len(items)%3 != 0 {
		return nil, false
	}
	var entries []entry
	for group := range slices.Chunk(items, 3) {
		name, ok1 := group[0].(string)
		ends, ok2 := group[1].(string)
		record, ok3 := group[2].(string)
		ms, err := strconv.ParseInt(ends, 10, 64)
		if !ok1 || !ok2 || !ok3 || err != nil {
			return nil, false
		}
		entries = append(entries, entry{name, ms, record})
	}
	return entries, true
}

// member describes one of several leases; state.lua has the form.
func member(e entry, now int64) (h driver.Holding, ok bool) {
	id, released := strings.CutPrefix(e.name, "-")
	id, _, _ = strings.Cut(id, " ")
	head, holder, ok := cutFields(e.record, 3)
	if !ok {
		return h, false
	}
	return driver.Holding{
		LeaseID: driver.LeaseID(id), Token: uint64(head[1]), Permits: int(head[2]),
		Holder: parseHolder(holder), ExpiresIn: e.left(now, head[0]), Released: released,
	}, true
}

// waiting describes a place; queue.lua has the form.
func waiting(e entry, now int64) (w driver.Waiting, ok bool) {
	head, rest, ok := cutFields(e.record, 7)
	_, holder, ok2 := strings.Cut(rest, " ") // without the inbox
	if !ok || !ok2 {
		return w, false
	}
	return driver.Waiting{
		LeaseID: driver.LeaseID(e.name), Mode: driver.Mode(head[1]), Permits: int(head[3]), Holder: parseHolder(holder),
		Since: time.Duration(min(max(now-head[6], 0), maxTTL.Milliseconds())) * time.Millisecond, ExpiresIn: e.left(now, head[0]),
	}, true
}

// cutFields reads n numbers, each with a space behind it, and returns what
// follows.
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
