package sim

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// An oracle checks the store after each script. It has its own code in Go to read the keys, and
// checks what scripts must never do to them.
type oracle struct {
	*history
	server   *server
	offsetUp time.Duration // greatest offset that the server's clock ever had
	ledgers  map[string]*ledger
	seen     map[holdfast.LeaseID]time.Time // when the store last had a lease
	ended    map[holdfast.LeaseID]bool      // leases whose end the store has confirmed
	rates    map[holdfast.LeaseID]rate      // of requests
}

// A ledger records the past of one name.
type ledger struct {
	granted map[holdfast.LeaseID]uint64      // the token of every lease that ever was
	queue   map[holdfast.LeaseID]storedPlace // after the last script
	max     uint64                           // the greatest token since the store last lost data
	maxAt   time.Time                        // when it was granted
	old     uint64                           // the greatest token before
	oldAt   time.Time
}

// A view is the store's state of one name.
type view struct {
	leases map[holdfast.LeaseID]storedLease
	limit  int           // permits in all; 0 if the leases have no permits
	places []storedPlace // live or not
}

type storedLease struct {
	ends    int64 // ms of the server's clock
	ttl     int64 // ms
	token   uint64
	permits int
}

type storedPlace struct {
	id     holdfast.LeaseID
	number float64
	ends   int64
}

func newOracle(h *history, s *server, names []string) *oracle {
	o := &oracle{history: h, server: s, offsetUp: s.offset, ledgers: map[string]*ledger{},
		seen: map[holdfast.LeaseID]time.Time{}, ended: map[holdfast.LeaseID]bool{},
		rates: map[holdfast.LeaseID]rate{},
	}
	for _, name := range names {
		o.ledgers[name] = &ledger{granted: map[holdfast.LeaseID]uint64{}}
	}
	s.watch = o.look
	return o
}

// companions returns the prefix of a lock's other keys; see redislock.
func companions(name string) string { return "holdfast:{" + name + "}:" }

// view reads the state of a name. The caller holds the server's lock.
func (o *oracle) view(name string) view {
	v := view{leases: map[holdfast.LeaseID]storedLease{}}
	space, base := o.server.space, companions(name)
	part := func(kind string) *entry { return space.find(base + kind + ":" + name) }
	detail := part("detail")
	if lock := space.find(name); lock != nil {
		v.readLeases(space, lock, part("holders"), detail)
	}
	if queue := part("queue"); queue != nil && detail != nil {
		for _, id := range ranked(queue) {
			if record, known := detail.hash["w"+id]; known {
				first, _, _ := strings.Cut(record, " ")
				ends, _ := strconv.ParseInt(first, 10, 64)
				v.places = append(v.places, storedPlace{holdfast.LeaseID(id), queue.set[id], ends})
			}
		}
	}
	return v
}

func (v *view) readLeases(space *keyspace, lock, holders, detail *entry) {
	_, text, _ := strings.Cut(lock.text, " ") // after the number of the layout
	words := strings.SplitN(text, " ", 4)
	if group, shared := strings.CutPrefix(words[0], "*"); shared {
		v.limit, _ = strconv.Atoi(words[1])
		if holders == nil || detail == nil || detail.hash["group"] != group {
			return
		}
		for member, ends := range holders.set {
			record := strings.SplitN(detail.hash["h"+member], " ", 4)
			if strings.HasPrefix(member, "-") || len(record) < 3 || int64(ends) <= space.millis() {
				continue
			}
			l := storedLease{ends: int64(ends)}
			l.ttl, _ = strconv.ParseInt(record[0], 10, 64)
			l.token, _ = strconv.ParseUint(record[1], 10, 64)
			l.permits, _ = strconv.Atoi(record[2])
			v.leases[holdfast.LeaseID(member)] = l
		}
		return
	}
	if len(words) == 4 && !strings.HasPrefix(words[0], "-") {
		ttl, _ := strconv.ParseInt(words[1], 10, 64)
		token, _ := strconv.ParseUint(words[2], 10, 64)
		v.leases[holdfast.LeaseID(words[0])] = storedLease{ends: lock.ends, ttl: ttl, token: token}
	}
}

// look checks the names in the keys of a script. The caller holds the server's lock.
func (o *oracle) look(keys []string, reply any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range keys {
		if b := o.ledgers[key]; b != nil {
			v := o.view(key)
			o.checkLocked(key, b, v)
			if held(reply) {
				o.checkLengthsLocked(key, v)
			}
		}
	}
}

// held reports whether a reply is acquire.lua's reply to a request that has to wait.
func held(reply any) bool {
	items, _ := reply.([]any)
	if len(items) != 7 || items[0] != int64(0) {
		return false
	}
	_, named := items[2].(string) // the holder; the reply to a batch has numbers only
	return named
}

// checkLengthsLocked checks that no waiter waits for longer than the TTL of the holder before it,
// even after the server's clock went back.
func (o *oracle) checkLengthsLocked(name string, v view) {
	for id, l := range v.leases {
		if left := l.ends - o.server.space.millis(); left > l.ttl {
			o.violateLocked("lease %s of %s, with a TTL of %d ms, is in the way for another %d ms", short(id), name, l.ttl, left)
		}
	}
}

func (o *oracle) checkLocked(name string, b *ledger, v view) {
	used := 0
	var fresh []holdfast.LeaseID
	for id, l := range v.leases {
		used += l.permits
		o.seen[id] = time.Now()
		token, known := b.granted[id]
		if !known || token != l.token { // known: the lease ended without its client's notice, and the client retried
			fresh = append(fresh, id)
		}
	}
	if v.limit > 0 && used > v.limit {
		o.violateLocked("the store has granted %d permits of %s, of %d", used, name, v.limit)
	}
	// One script may hand over to several clients, in the order of their tokens.
	slices.SortFunc(fresh, func(x, y holdfast.LeaseID) int { return cmp.Compare(v.leases[x].token, v.leases[y].token) })
	for _, id := range fresh {
		o.grantedLocked(name, b, v, id)
	}
	o.checkExpiriesLocked(name, v)
	b.queue = map[holdfast.LeaseID]storedPlace{}
	for _, p := range v.places {
		b.queue[p.id] = p
	}
}

// grantedLocked checks a new lease.
func (o *oracle) grantedLocked(name string, b *ledger, v view, id holdfast.LeaseID) {
	token, now := v.leases[id].token, time.Now()
	o.counts["grants"]++
	o.noteLocked("server: grants %s to lease %s, token %d", name, short(id), token)
	// INVARIANT I2: tokens grow over a loss of data only if the clock has advanced by more than
	// its error.
	survives := now.Sub(b.oldAt) > o.offsetUp-o.server.offset+time.Millisecond
	if token < b.max+driver.TokenRange || token < b.old+driver.TokenRange && survives {
		o.violateLocked("token %d of %s, lease %s, is not above %d, and %d of %v before",
			token, name, short(id), b.max, b.old, now.Sub(b.oldAt))
	}
	b.max, b.maxAt = max(b.max, token), now
	b.granted[id] = token
	if o.ended[id] && !o.lost {
		o.violateLocked("lease %s of %s is granted after its end was confirmed", short(id), name)
	}
	// INVARIANT I7: no waiter is overtaken.
	own, waited := b.queue[id]
	o.noteLocked("server: the queue of %s was %v, and is %v", name, b.queue, v.places)
	if !waited {
		own.number = math.Inf(1)
	}
	for _, p := range v.places {
		// A waiter that was late, or has another number, has lost its place and joined again.
		before := b.queue[p.id]
		if before.number == p.number && before.ends > o.server.space.millis() && p.number < own.number {
			o.violateLocked("lease %s of %s overtakes %s, which has place %.0f", short(id), name, short(p.id), p.number)
			break
		}
	}
}

// checkExpiriesLocked checks INVARIANT I3: the store keeps each lease that a client trusts.
func (o *oracle) checkExpiriesLocked(name string, v view) {
	if !o.tainted.IsZero() {
		return
	}
	now := time.Now()
	for _, t := range o.byName[name] {
		deadline := t.lease.Deadline()
		if !t.to.IsZero() || t.lease.Context().Err() != nil || !deadline.After(now) {
			continue
		}
		l, live := v.leases[t.lease.ID()]
		switch {
		case !live:
			o.violateLocked("%s trusts lease %s of %s for another %v; the store has ended it",
				t.holder, short(t.lease.ID()), name, deadline.Sub(now))
		case t.lease.Token() < l.token || t.lease.Token() >= l.token+driver.TokenRange:
			o.violateLocked("%s has token %d of %s, the store %d", t.holder, t.lease.Token(), name, l.token)
		case deadline.After(o.server.instantLocked(l.ends)):
			o.violateLocked("%s trusts lease %s of %s until %v after the store's end",
				t.holder, short(t.lease.ID()), name, deadline.Sub(o.server.instantLocked(l.ends)))
		}
	}
}

// losesData is called before the store loses its data.
func (o *oracle) losesData() {
	o.taint(true)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range o.ledgers {
		b.old, b.oldAt = max(b.old, b.max), b.maxAt
		b.max, b.queue = 0, nil
	}
}

// steps is called when the server's clock is stepped.
func (o *oracle) steps(d time.Duration) {
	if d > 0 {
		o.taint(false)
	}
	o.server.step(d)
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	o.offsetUp = max(o.offsetUp, o.server.offset)
}

// free reports whether the store has no live lease of a name.
func (o *oracle) free(name string) bool {
	o.server.mu.Lock()
	defer o.server.mu.Unlock()
	o.server.tickLocked()
	return len(o.view(name).leases) == 0
}
