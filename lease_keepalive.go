package holdfast

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/schedule"
)

// A leaseKeeper renews the leases of one client, and ends those that have reached their
// deadline. It has one timer, and runs goroutines only while something is due.
type leaseKeeper struct {
	client *Client

	mu     sync.Mutex // guards the rest, and the entry of every lease
	table  schedule.Timetable[*Lease]
	rivals rivals
	asleep time.Duration // how far the boot-time clock is ahead; see lease_suspension.go
	stood  int           // how many renewals were put off; see shareLocked
	vacant chan struct{} // closed when no lease is left; nil if no call waits for that

	size     atomic.Int64 // the size of table, readable without mu; see pace
	suspends bool         // the system has a clock that shows suspensions
	started  time.Time
}

func (k *leaseKeeper) init(c *Client) {
	k.client, k.rivals = c, rivals{}
	k.table.Init(k.tick)
	k.watchSuspensions()
}

// add puts a new lease under this keeper, unless it returns a lease that is ahead. The caller
// must end the lease behind, if any. See rivals.
func (k *leaseKeeper) add(l *Lease) (behind, ahead *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if behind, ahead = k.rivals.enter(l); ahead == nil {
		k.putLocked(l)
	}
	return behind, ahead
}

// replace ends a lease for its holder and begins the next turn, for f, in one step: a lookup by
// lease ID finds either l or the next turn. It returns nil if l has ended, was downgraded, is
// not this client's latest lease of the name, has a request under way, or has less than half of
// its TTL left.
func (k *leaseKeeper) replace(l *Lease, f *follower, now instant) *Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != stateHeld || l.single || k.rivals[l.name] != l || l.term.underway > 0 ||
		l.term.remaining(now) < l.term.presentTTL()/2 {
		return nil
	}
	next := &Lease{
		client: l.client, name: l.name, id: l.id, token: l.token + 1, holder: l.holder, asked: l.asked, outer: f.outer,
		cancel: l.cancel, mode: l.mode, values: f.values, cohort: l.cohort, term: l.term.handedOn(f.keepAlive, now),
	}
	next.entry.Item = next
	l.state, l.next = stateReleasing, next
	k.table.Remove(&l.entry)
	k.rivals[l.name] = next
	k.putLocked(next)
	return next
}

// update moves leases to their present places in the timetable.
func (k *leaseKeeper) update(batch ...renewal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range batch {
		k.putLocked(r.lease)
	}
}

func (k *leaseKeeper) putLocked(l *Lease) {
	if at, live := l.attention(); live { // remove takes out a lease that has ended
		k.table.Put(&l.entry, at)
	}
	k.countLocked()
}

// remove removes l.
func (k *leaseKeeper) remove(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.table.Remove(&l.entry)
	k.countLocked()
	k.rivals.leave(l)
}

// countLocked updates size, and closes vacant when no lease is left.
func (k *leaseKeeper) countLocked() {
	n := k.table.Len()
	k.size.Store(int64(n))
	if n == 0 && k.vacant != nil {
		close(k.vacant)
		k.vacant = nil
	}
}

// vacated returns a channel that is closed as soon as no lease is held.
func (k *leaseKeeper) vacated() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.vacant == nil {
		k.vacant = make(chan struct{})
	}
	vacant := k.vacant
	k.countLocked()
	return vacant
}

// all returns the leases that are held.
func (k *leaseKeeper) all() []*Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.table.All()
}

// named returns the leases of a name. An exclusive lease is found by an index, because a store
// that loses its data reports the loss of every lease. Shared leases and permits are found by a
// scan: an index would cost each of them more than it saves.
func (k *leaseKeeper) named(name string) (leases []*Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.rivals[name]; l != nil {
		leases = append(leases, l)
	}
	if k.table.Len() == len(k.rivals) {
		return leases
	}
	for _, l := range k.table.All() {
		if l.name == name && l.asked != Exclusive {
			leases = append(leases, l)
		}
	}
	return leases
}

// tick runs on the timer's goroutine when a lease is due for attention.
func (k *leaseKeeper) tick() {
	expired, renewals := k.due(k.client.now())
	for _, l := range expired {
		l.lose(l.present().cause())
	}
	for _, batch := range renewals {
		k.client.spawn(func(ctx context.Context) { k.renew(ctx, batch) })
	}
}

// crowd is how many full batches of renewals go out at the same time. INVARIANT I9: requests
// that are sent after them have to wait for the store.
const crowd = 8

// due returns the leases that have expired, and the batches of renewals to send now. While a
// batch has room, it also takes leases that are due soon: leases with the same TTL are thus
// renewed together. If very many are due at once, it puts off most of those that can wait, each
// by a different time, so that their next renewals are spread.
func (k *leaseKeeper) due(now instant) (expired []*Lease, renewals [][]renewal) {
	batches := schedule.NewBatches(k.client.features.Router, k.client.features.ExtendBatch(), renewal.name)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wakeLocked()
	k.table.Visit(func(l *Lease) (next time.Time, wait bool) {
		r, next, over := l.step(now, batches.Room(), batches.Full() >= crowd)
		switch {
		case over:
			expired = append(expired, l)
			k.rivals.leave(l)
			return time.Time{}, false
		case r.lease != nil:
			batches.Add(r)
		case k.table.At(&l.entry).After(now.Mono):
			return time.Time{}, true
		}
		return next, false
	})
	k.countLocked()
	return expired, batches.All()
}

// shareLocked returns the share for the next call of stoodBack. The shares ascend, because the
// timetable is fast for ascending times.
func (k *leaseKeeper) shareLocked() float64 {
	const shares = 4096
	k.stood++
	return float64(k.stood%shares) / shares
}

// renew sends one batch and notes the replies. It runs on a goroutine of its own, so that a store
// that hangs does not delay other batches. It ends when the store answers, or at the last deadline
// of the leases in the batch.
func (k *leaseKeeper) renew(ctx context.Context, batch []renewal) {
	last := time.Time{}
	for _, r := range batch {
		last = later(last, r.lease.Deadline())
	}
	ctx, cancel := ask.LimitUntil(ctx, last)
	defer cancel()
	// INVARIANT I3: the clock starts before the first byte is written.
	k.client.sendRenewals(ctx, k.client.now(), batch) // the leases' contexts carry the errors
}

// step decides what l needs now. It returns over if the lease has ended; otherwise the renewal to
// send now, or a zero renewal, and when l needs attention next. With joining, a renewal may go out
// a little early; with crowded, a little late.
func (l *Lease) step(now instant, joining, crowded bool) (r renewal, next time.Time, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != stateHeld || l.term.over(now) {
		return renewal{}, time.Time{}, true
	}
	pace := l.client.leases.pace()
	if crowded {
		l.term = l.term.stoodBack(now, l.client.leases.shareLocked(), pace)
	}
	if l.term.due(now, joining && !crowded, pace) {
		r = l.beginRenewalLocked(now)
	}
	return r, l.term.attention(), false
}

// beginRenewalLocked returns the renewal to send, or a zero renewal if the lease may not or need
// not be renewed any more.
func (l *Lease) beginRenewalLocked(now instant) renewal {
	t, x, ok := l.term.renewing(now)
	l.term = t
	if !ok || !l.beginLocked(x, now) {
		return renewal{}
	}
	return renewal{l, x}
}

// attention returns when the keeper must check l next, and whether l is still held.
func (l *Lease) attention() (at time.Time, live bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term.attention(), l.state == stateHeld
}

// handOut sets how the lease is kept alive from now on.
func (l *Lease) handOut(opts AcquireOptions) {
	l.mu.Lock()
	l.term = l.term.keptAlive(&opts, time.Now())
	l.mu.Unlock()
	l.client.leases.update(renewal{lease: l})
}

// A holder learns by a renewal that its lease was deleted. So a lease with a long TTL is renewed
// more often than its TTL requires, at least every hurriedPause, as long as that costs the client
// no more than hurriedPerSecond renewals per second.
const (
	hurriedPause     = 5 * time.Second
	hurriedPerSecond = 200
)

// pace returns the longest pause between two renewals of a lease: 5 s, and with more than 1,000
// leases proportionally more.
func (k *leaseKeeper) pace() time.Duration {
	return max(hurriedPause, time.Duration(k.size.Load())*(time.Second/hurriedPerSecond))
}
