package rediscore

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// An Inspection is the state of one name in the store, or the error.
type Inspection struct {
	Lock lockinfo.LockState
	Err  error
}

// An inspection is an Inspection in progress.
type inspection struct {
	Inspection

	value  string
	left   int64 // ms; unheld if the lock is free
	now    int64 // ms of the server's clock
	leases []entry
	rest   bool // there are more leases
	places []entry
	next   string // number of the last place read, if there are more
	part   bool   // the queue length counts only the places read
}

// unheld is the ms left of a free lock.
const unheld = -2

// parseInspection reads the reply of inspect.lua for one name.
func parseInspection(name string, reply any) (f inspection) {
	f.Lock.Name = name
	if text, ok := reply.(string); ok {
		f.Err = ReplyError(text)
		return f
	}
	var last string
	var leases, places any
	var length, rest, part int64
	ok := form.Read(reply, &f.now, &f.left, &f.value, &last, &leases, &places, &length, &rest, &f.next, &part)
	var ok1, ok2 bool
	f.leases, ok1 = parseEntries(leases)
	f.places, ok2 = parseEntries(places)
	if !ok || !ok1 || !ok2 {
		f.Err = form.Malformed("inspect", reply)
		return f
	}
	f.Lock.QueueLength, f.rest, f.part = int(length), rest == 1, part == 1
	if last != "" {
		token, err := form.ReadToken(last)
		if err != nil {
			f.Err = form.NoLastToken()
		}
		f.Lock.LastToken = token
	}
	return f
}

// parsePlain reads the reply of list.lua for one name. It reports whether the lock is one exclusive
// lease.
func parsePlain(name string, reply any) (lock lockinfo.LockState, ok bool) {
	text, _ := reply.(string)
	fields := strings.SplitN(text, " ", 4)
	if len(fields) < 4 {
		return lock, false
	}
	now, err1 := strconv.ParseInt(fields[0], 10, 64)
	left, err2 := strconv.ParseInt(fields[1], 10, 64)
	last, err3 := form.ReadToken(cmp.Or(fields[2], "0"))
	v, ok := parseValue(fields[3])
	lock = lockinfo.LockState{Name: name, Holders: []lockinfo.Holding{exclusive(v, left, now)}, LastToken: last}
	return lock, ok && cmp.Or(err1, err2, err3) == nil
}

// describe fills in Lock from the store's reply.
func (f *inspection) describe() {
	if f.Err != nil {
		f.Lock = lockinfo.LockState{}
		return
	}
	if f.left != unheld {
		describeHolders(&f.Lock, f.value, f.left, f.leases, f.now)
	}
	for _, e := range f.places {
		if w, ok := waiting(e, f.now); ok {
			f.Lock.Queue = append(f.Lock.Queue, w)
		}
	}
}

// describeHolders sets the mode and the holders from the lock's value, its expiry and its leases.
func describeHolders(lock *lockinfo.LockState, text string, left int64, leases []entry, now int64) {
	_, limit, ok := parseGroup(text)
	if !ok || len(leases) == 0 {
		lock.Holders = []lockinfo.Holding{holding(text, left, now)}
		return
	}
	for _, e := range leases {
		if h, ok := member(e, limit, now); ok {
			lock.Mode = lock.Mode.Plus(h.Mode)
			lock.Holders = append(lock.Holders, h)
		}
	}
	slices.SortFunc(lock.Holders, func(a, b lockinfo.Holding) int { return cmp.Compare(a.Token, b.Token) })
}

// holding describes the lease that a lock's value and expiry represent.
func holding(text string, left, now int64) lockinfo.Holding {
	v, ok := parseValue(text)
	if !ok {
		return lockinfo.Holding{ExpiresIn: form.ExpiresIn(left)}
	}
	return exclusive(v, left, now)
}

// exclusive describes an exclusive lease whose key expires in left ms.
func exclusive(v value, left, now int64) lockinfo.Holding {
	if ttl := v.ttl.Milliseconds(); left < 0 || left > ttl {
		left = ttl // as the next acquire will clamp it
	}
	return lockinfo.Holding{
		LeaseID: v.id, Token: v.token, Holder: v.holder,
		Since: form.Ago(now*1000 - v.granted), ExpiresIn: form.ExpiresIn(left), Released: v.released,
		TTL: v.ttl,
	}
}

// An entry is a member of a sorted set with its record: a lease or a place.
type entry struct {
	name   string
	ends   int64 // ms of the server's clock
	record string
}

// left returns how long an entry still lasts, at most ttl, because the next request for the name
// clamps it to that.
func (e entry) left(now, ttl int64) time.Duration {
	return form.ExpiresIn(max(min(e.ends-now, ttl), 0))
}

// parseEntries reads names, ends and records, one after the other.
func parseEntries(reply any) ([]entry, bool) {
	items, ok := reply.([]any)
	if !ok || len(items)%3 != 0 {
		return nil, false
	}
	var entries []entry
	for group := range slices.Chunk(items, 3) {
		var name, ends, record string
		ok := form.Read(group, &name, &ends, &record)
		ms, err := strconv.ParseInt(ends, 10, 64)
		if !ok || err != nil {
			return nil, false
		}
		entries = append(entries, entry{name, ms, record})
	}
	return entries, true
}

// member describes one lease of a group that has this limit; state.lua describes the form.
func member(e entry, limit int, now int64) (h lockinfo.Holding, ok bool) {
	id, released := strings.CutPrefix(e.name, "-")
	id, _, _ = strings.Cut(id, " ")
	head, holder, ok := cutFields(e.record, 4)
	if !ok {
		return h, false
	}
	return lockinfo.Holding{
		LeaseID: lockinfo.LeaseID(id), Token: uint64(head[1]), Mode: groupMode(int(head[2]), limit),
		Holder: holders.Read(holder), Since: form.Ago(now*1000 - head[3]), ExpiresIn: e.left(now, head[0]), Released: released,
		TTL: form.ExpiresIn(head[0]),
	}, true
}

// waiting describes a place; queue.lua describes the form.
func waiting(e entry, now int64) (w lockinfo.Place, ok bool) {
	head, rest, ok := cutFields(e.record, 7)
	_, holder, ok2 := strings.Cut(rest, " ") // without the inbox
	if !ok || !ok2 {
		return w, false
	}
	return lockinfo.Place{
		LeaseID: lockinfo.LeaseID(e.name), Mode: readMode(head[1], head[2], head[3]), Holder: holders.Read(holder),
		Since: form.Ago(max(now-head[6], 0) * 1000), ExpiresIn: e.left(now, head[0]),
	}, true
}
