package holdfast

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// A cohort is the callers of one client that wait for one lock, or have it, with
// Options.Cohorts. They share a place in the queue of the store, and a lease. One of
// them leads: it requests the lock from the store, as any acquire does. When a holder releases
// the lease, the client hands it on to the caller that has waited longest, and the store keeps
// it. Each turn is a Lease of its own, with the same lease ID and the next token.
type cohort struct {
	client *Client
	key    cohortKey

	// known is what the leader has learned from the store; nil if no request has been answered or
	// has failed since the last grant. Followers use it for their events and errors.
	known atomic.Pointer[knowledge]

	// The mutex of cohorts guards the rest.
	waiting []*follower // in the order of their calls
	led     bool        // a caller leads: it requests the lock
	since   time.Time   // when that caller began to lead
	open    *Lease      // the present turn, if another may follow it; else nil
	turns   int         // how many turns the lease has had
	until   time.Time   // no turn begins later
	timer   *time.Timer // fires at until; nil unless a caller waits for a turn
}

// The limits of a lease that is handed on. At a limit the client releases it in the store, and
// a caller that still waits queues there again. INVARIANT I7.
const (
	cohortTurns = int(driver.TokenRange)
	cohortTime  = 20 * time.Millisecond
)

// A cohortKey is what the requests of a cohort have in common.
type cohortKey struct {
	name string
	ttl  time.Duration
}

// cohorts has all cohorts of one client. mu is taken before leaseKeeper.mu and Lease.mu.
type cohorts struct {
	mu  sync.Mutex // guards all, and the cohorts
	all map[cohortKey]*cohort
}

// A follower waits in a cohort.
type follower struct {
	turn chan turn // receives one turn

	// These become part of its lease. They are copied, so that the acquisition itself stays on
	// the stack.
	values    context.Context
	outer     *Lease
	keepAlive KeepAlive
}

// A turn is what a follower receives: a lease, the lead, or an error.
type turn struct {
	lease *Lease
	lead  bool
	id    LeaseID // with lead: the leader before may have left a place or a lease of this ID in the store
	err   error
}

// knowledge is the part of an acquisition that explains why it waits.
type knowledge struct {
	blocker *driver.Blocker
	at      time.Time
	failing failing
}

// mayJoin reports whether the acquire may take part in a cohort: no option makes its lease differ
// from other callers'.
func (a *acquisition) mayJoin() bool {
	o := &a.opts
	return a.client.opts.Cohorts && a.client.features.Queuer != nil && o.Mode == Exclusive &&
		o.MinHold+o.MaxHold+o.StallAfter+o.LockDelay == 0 && o.Replicas == 0 && o.MinToken == 0 && !o.WholeTTL &&
		o.Reason == "" && len(o.Labels) == 0 && o.OnWait == nil
}

// follow waits for a turn. If it returns neither a lease nor an error the caller leads: it must
// request the lock from the store, and call endLead with the outcome.
func (a *acquisition) follow(ctx context.Context) (lease *Lease, err error) {
	for {
		f := &follower{make(chan turn, 1), a.values, a.outer, a.opts.KeepAlive}
		co := a.join(f)
		if co == nil {
			return nil, nil
		}
		a.learn(co, false)
		held := &HeldError{Holder: a.client.opts.Holder}
		if a.blocker != nil {
			held = a.heldError(0)
		}
		a.tellWaiting(held)
		t, silent := a.awaitTurn(ctx, co, f)
		if silent || ctx.Err() != nil || a.client.isClosed() {
			return nil, a.leaveCohort(ctx, co, f, t)
		}
		switch {
		case t.lease != nil && t.lease.Valid():
			a.req.LeaseID = t.lease.id // for the events
			return t.lease, nil
		case t.lease != nil: // the process was paused. INVARIANT I3
			_ = t.lease.Release(ctx)
		case t.lead:
			a.lead(co, t.id)
			return nil, nil
		case final(t.err), !a.mayRetry(t.err):
			return nil, t.err
		}
	}
}

// awaitTurn waits for a turn, or for the end of the wait. It returns silent if the caller has no
// MaxWait and gives up, as in mayRetry, because the store has not answered any caller of the cohort
// since its call. The leader may have a MaxWait, and go on.
func (a *acquisition) awaitTurn(ctx context.Context, co *cohort, f *follower) (t turn, silent bool) {
	var late <-chan time.Time
	if a.opts.MaxWait == 0 && a.blocker == nil {
		timer := time.NewTimer(time.Until(a.began.Add(a.client.opts.RequestTimeout)))
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case t = <-f.turn:
			return t, false
		case <-ctx.Done():
			return turn{}, false
		case <-a.client.closing:
			return turn{}, false
		case <-late:
		}
		late = nil
		if a.learn(co, false); a.blocker == nil && !co.grantedSince(a.began) {
			return turn{}, true
		}
	}
}

// grantedSince reports whether the store may have granted the cohort the lock since then.
func (co *cohort) grantedSince(then time.Time) bool {
	co.client.cohorts.mu.Lock()
	defer co.client.cohorts.mu.Unlock()
	return co.until.After(then)
}

// join makes the caller wait in its cohort. If the cohort has no leader and no open turn, the
// caller leads instead, and join returns nil.
func (a *acquisition) join(f *follower) *cohort {
	all := &a.client.cohorts
	all.mu.Lock()
	defer all.mu.Unlock()
	key := cohortKey{a.req.Name, a.opts.TTL}
	if co := all.all[key]; co != nil {
		co.expireLocked() // this may remove it from all
	}
	co := all.all[key]
	if co == nil {
		co = &cohort{client: a.client, key: key}
		if all.all == nil {
			all.all = map[cohortKey]*cohort{}
		}
		all.all[key] = co
	}
	if !co.led && co.open == nil {
		co.led, co.since, a.leads = true, time.Now(), co
		return nil
	}
	co.waiting = append(co.waiting, f)
	co.armLocked()
	return co
}

// lead makes the caller the leader. It takes over the lease ID of the leader before, and so its
// place in the queue. Only the store's reply to its own request tells whether that place still
// exists.
func (a *acquisition) lead(co *cohort, id LeaseID) {
	if a.leads = co; id != "" {
		a.req.LeaseID, a.uncertain = id, true
	}
}

// endLead ends the lead with its outcome. A lease becomes the first turn. If only the leader's
// own wait has ended, the next caller leads, and takes over its place. Any other error goes to
// all callers that wait.
func (a *acquisition) endLead(ctx context.Context, lease *Lease, err error) {
	all, co := &a.client.cohorts, a.leads
	all.mu.Lock()
	defer all.mu.Unlock()
	a.leads, co.led = nil, false
	switch {
	case lease != nil:
		co.known.Store(nil)
		co.open, co.turns, co.until = lease, 1, time.Now().Add(cohortTime)
		co.armLocked()
	case err == nil, ctx.Err() != nil && !final(err): // of this caller only
		id := LeaseID("")
		if a.uncertain || !a.queued.Mono.IsZero() {
			id = a.req.LeaseID
		}
		if co.promoteLocked(id) {
			a.uncertain, a.queued = false, instant{} // the next leader cleans up
		}
	default:
		for _, f := range co.waiting {
			f.turn <- turn{err: err}
		}
		co.waiting = nil
		co.known.Store(nil)
		co.promoteLocked("")
	}
}

// leaveCohort ends the wait of a caller. If the caller has received a turn, which may be t, it
// passes the turn on. It returns why the wait has ended.
func (a *acquisition) leaveCohort(ctx context.Context, co *cohort, f *follower, t turn) error {
	all := &a.client.cohorts
	all.mu.Lock()
	i := slices.Index(co.waiting, f)
	if i >= 0 {
		co.waiting = slices.Delete(co.waiting, i, i+1)
	}
	all.mu.Unlock()
	if i < 0 && t == (turn{}) {
		t = <-f.turn
	}
	a.learn(co, true)
	err := ErrClosed
	switch {
	case ctx.Err() != nil:
		err = a.ended(ctx)
	case !a.client.isClosed():
		a.blocker = nil // the store has named none
		err = a.silentError()
	}
	switch {
	case t.lease != nil:
		a.client.spawn(func(background context.Context) { _ = t.lease.Release(background) })
	case t.lead:
		a.lead(co, t.id)
		a.endLead(ctx, nil, nil)
	}
	return err
}

// publish tells the others of the cohort what its leader knows.
func (a *acquisition) publish() {
	if a.leads != nil {
		a.leads.known.Store(&knowledge{a.blocker, a.blockedAt, a.failing})
	}
}

// learn notes the blocker: the turn of another caller, or the leader's blocker. At the end of the
// wait it also notes the leader's failed requests. If the store is not silent by then, and the
// leader has no blocker, this client itself is the blocker.
func (a *acquisition) learn(co *cohort, end bool) {
	c := a.client
	c.cohorts.mu.Lock()
	open, led, since := co.open, co.led, co.since
	c.cohorts.mu.Unlock()
	own := driver.Blocker{Holder: c.opts.Holder}
	if open != nil {
		now, t := c.now(), open.present()
		own.Since, own.ExpiresIn = now.Mono.Sub(t.began.Mono), t.remaining(now)
	}
	n := co.known.Load()
	switch {
	case end && n != nil:
		a.failing = n.failing
	case end && led:
		a.failing = failing{requests: 1, since: since}
	}
	switch {
	case open == nil && n != nil && n.blocker != nil:
		a.blocker, a.blockedAt = n.blocker, n.at
	case open != nil || end && !a.silent():
		a.blocked(own, time.Now())
	}
}

// handOn makes the caller that has waited longest the holder of the lease. It returns the next
// turn, which replaces l from now on, and the follower that the caller must send it to. It returns
// nil if the caller must release the lease in the store.
//
// INVARIANT I3: the next turn has the deadline of this one, and does not begin after it. INVARIANT
// I9: no request to lengthen the lease is under way.
func (l *Lease) handOn(now instant) (*Lease, *follower) {
	co, all := l.cohort, &l.client.cohorts
	if co == nil {
		return nil, nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if co.open != l || len(co.waiting) == 0 || co.turns == cohortTurns || !now.Mono.Before(co.until) {
		return nil, nil
	}
	next := l.client.leases.replace(l, co.waiting[0], now)
	if next == nil {
		return nil, nil
	}
	co.open = next
	co.turns++
	return next, co.takeFirstLocked()
}

// endTurns notes that the lease was released in the store, or was left: the caller that has waited
// longest then requests the lock from the store. It is called after the release, because a request
// for a lock that is taken costs the store more. It also deletes a cohort without callers.
func (l *Lease) endTurns() {
	if co := l.cohort; co != nil {
		l.client.cohorts.mu.Lock()
		defer l.client.cohorts.mu.Unlock()
		if co.open == l {
			co.closeLocked()
		}
	}
}

// successor returns the turn after l in its cohort, or nil. A message about the loss of l may
// arrive while l is handed on. It then applies to the successor.
func (l *Lease) successor() *Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// armLocked starts the timer that calls expire at until, if a caller waits for a turn.
func (co *cohort) armLocked() {
	if co.open != nil && co.timer == nil && len(co.waiting) > 0 {
		co.timer = time.AfterFunc(time.Until(co.until), co.expire)
	}
}

// expire is called at until, the end of the time in which turns may begin.
func (co *cohort) expire() {
	co.client.cohorts.mu.Lock()
	defer co.client.cohorts.mu.Unlock()
	co.expireLocked()
}

// expireLocked closes the cohort if until has passed.
func (co *cohort) expireLocked() {
	if co.open != nil && !time.Now().Before(co.until) {
		co.closeLocked()
	}
}

// closeLocked notes that no turn follows the present one. The caller that has waited longest then
// queues in the store.
func (co *cohort) closeLocked() {
	co.open = nil
	if co.timer != nil {
		co.timer.Stop()
		co.timer = nil
	}
	co.promoteLocked("")
}

// promoteLocked makes the caller that has waited longest the leader, unless there is a leader or an
// open turn. id is the lease ID of a place that may exist in the store, or "". It reports whether
// a caller was promoted. If no caller waits, it deletes the cohort.
func (co *cohort) promoteLocked(id LeaseID) bool {
	if co.led || co.open != nil {
		return false
	}
	if len(co.waiting) == 0 {
		delete(co.client.cohorts.all, co.key)
		return false
	}
	co.led, co.since = true, time.Now()
	co.takeFirstLocked().turn <- turn{lead: true, id: id}
	return true
}

// takeFirstLocked removes and returns the caller that has waited longest.
func (co *cohort) takeFirstLocked() *follower {
	f := co.waiting[0]
	co.waiting[0] = nil
	co.waiting = co.waiting[1:]
	return f
}
