package holdfast

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/places"
)

// A term is the arithmetic of one lease: until when its holder trusts it, when its renewals are
// due, and how long the store may keep it. It is a value: its methods read no clock, take no lock
// and send nothing. The caller passes the present instant, and gets a result or the next term.
// Only this file does arithmetic with the deadlines of leases; other files at most pick the
// earliest or the latest of several.
//
// It follows two rules. INVARIANT I3: a deadline counts from an instant before its request was
// sent, and moves later only if the request was certainly granted. INVARIANT I8: a time that has
// passed on either of the local clocks has passed.
type term struct {
	ttl       time.Duration // the TTL of renewals
	lockDelay time.Duration // how much longer than ttl the store keeps the lease
	minHold   time.Duration // counts from began; see keepFor
	maxHold   time.Duration // counts from began; 0: no bound
	patience  time.Duration // the longest time without a call of Heartbeat; 0: no bound
	keepAlive bool

	began     instant   // before the granted request was sent, or when the hand-over arrived
	deadline  instant   // until when the lease is trusted
	heard     time.Time // when the last granted request was sent
	renewAt   time.Time // when the keep-alive sends the next renewal
	heartbeat time.Time // when Heartbeat was called last

	provisional bool // handed over for the rest of its place: it does not have its whole TTL yet
	capped      bool // the deadline is as late as maxHold allows
	stalled     bool // a heartbeat was overdue when a renewal was due

	trouble error // why the last renewal failed, or nil

	longest  time.Duration // the greatest TTL of all requests
	underway int           // how many requests that would lengthen the lease have no reply yet
	expiry   time.Time     // when the store ends the lease at the latest, without those under way
}

// The part of a TTL that a holder does not use. The store's clock may be fast, or the holder's
// slow, while a time service slews it: by 8.4 % with chrony, which can be set to 10 % at most.
// docs/adr/0026-slewed-clocks.md has the sources, and says why the part has no bound for long
// TTLs. driftFloor covers stores that count in milliseconds, timers that fire late, and
// slewFresh of package clock.
const (
	driftDivisor = 10
	driftFloor   = 2 * time.Millisecond
)

// When renewals are sent, as parts of the TTL. A lease is renewed after a third of its TTL, and
// again while no reply comes. So several renewals fit before the deadline even if the store
// takes almost half of the TTL to answer.
const (
	renewalRemaining = 1 - 1.0/driftDivisor - 1.0/3 // a renewal is due when this part of the TTL is left
	unansweredPart   = 6                            // after a renewal without a reply, the next follows in 1/6
	retryDivisor     = 20                           // after a failed renewal, the next follows in 1/20
	batchingPart     = 10                           // a batch includes the renewals that are due within 1/10, or 1/10 of the pace

	// A lease that was handed over has used up part of its time, but at most half, unless
	// refreshes of its place failed.
	confirmRemaining = 1.0/2 - 1.0/driftDivisor
)

// confirmAfter is when the keep-alive requests the whole TTL of a lease that was handed over.
// Short work is done by then, and needs no such request.
const confirmAfter = 100 * time.Millisecond

// trusted returns how long a lease may be trusted, counted from the instant
// before its request was sent. INVARIANT I3: the store counts the same TTL
// from when it received the request, which is later, so the deadline is never
// later than the expiry.
func trusted(ttl time.Duration) time.Duration {
	return ttl - ttl/driftDivisor - driftFloor
}

// ttlFor returns a TTL that is trusted for d; the inverse of trusted.
func ttlFor(d time.Duration) time.Duration {
	return ceilMS((d + driftFloor) * driftDivisor / (driftDivisor - 1))
}

// newTerm returns the term of a lease that is requested and not granted yet. longest
// is the greatest TTL of its requests, for a lease or for a place.
func newTerm(o *AcquireOptions, longest time.Duration) term {
	return term{
		ttl: o.TTL, lockDelay: o.LockDelay, minHold: o.MinHold, maxHold: o.MaxHold,
		patience: o.StallAfter, keepAlive: o.KeepAlive == KeepAliveOn, longest: longest, underway: 1,
	}
}

// granted begins the term with a grant, whose request was sent at sent, and whose reply arrives
// now. It returns false if the reply is too late. pace is the longest pause between renewals;
// see leaseKeeper.pace.
func (t term) granted(sent, now instant, pace time.Duration) (term, bool) {
	t.began, t.deadline = sent, sent.Add(trusted(t.ttl))
	if now.Reached(t.deadline) {
		return t, false
	}
	return t.begun(now, pace), true
}

// handedOver begins the term with a notice of a hand-over, which arrives now. It returns false if
// the notice is too late.
//
// INVARIANT I3: the lease ends when the place would. The place lasts waiterTTL from the last
// request for it that the store received, so at least until queued plus waiterTTL: queued is when
// the last request that was answered was sent. The store may have granted the lease at any time
// since, so began is now.
func (t term) handedOver(queued, now instant, waiterTTL, pace time.Duration) (term, bool) {
	t.began, t.deadline, t.provisional = now, queued.Add(trusted(waiterTTL)).AsOf(now), true
	if now.Reached(t.deadline) {
		return t, false
	}
	// The TTL may be shorter than the rest of the place. The holder then gets the TTL that it
	// requested, and the lease is not provisional. The deadlines are compared as of now, because
	// the machine may have been suspended since queued.
	if whole := now.Add(trusted(t.ttl)); !t.deadline.Mono.Before(whole.Mono) {
		t.deadline, t.provisional = whole, false
	}
	return t.begun(now, pace), true
}

// handedOn returns the term of the next turn of the lease in its cohort. The turn begins now, and
// has the same deadline.
func (t term) handedOn(alive KeepAlive, now instant) term {
	t.began = now
	return t.keptAlive(&AcquireOptions{KeepAlive: alive}, now.Mono)
}

// placeOver reports whether a place may have ended, so that a lease that was handed over to it
// may not be trusted.
func placeOver(queued, now instant, waiterTTL time.Duration) bool {
	return now.Reached(queued.Add(trusted(waiterTTL)))
}

// begun fills in what follows from the beginning and the deadline.
func (t term) begun(now instant, pace time.Duration) term {
	t.deadline = t.deadline.AsOf(now)
	t.heard, t.heartbeat = t.began.Mono, t.began.Mono
	t.expiry, t.underway = now.Mono.Add(t.longest), 0 // the store granted it before now
	t.capped = t.maxHold == t.ttl && !t.provisional
	t.renewAt = t.nextRenewal(pace)
	if t.provisional {
		t.renewAt = earlier(t.began.Mono.Add(confirmAfter), t.renewAt)
	}
	return t
}

// over reports whether the lease may not be trusted any more.
func (t term) over(now instant) bool { return now.Reached(t.deadline) }

// remaining returns how long the lease may be trusted from now on without a renewal.
func (t term) remaining(now instant) time.Duration { return max(0, now.Until(t.deadline)) }

// cause returns why the deadline passed.
func (t term) cause() error {
	switch {
	case t.capped:
		return errMaxHold
	case t.stalled:
		return errStalled
	case t.trouble != nil: // as text only, so that errors.Is finds only ErrLost
		return fmt.Errorf("%w (the last renewal: %s)", errExpired, t.trouble.Error())
	}
	return errExpired
}

// renews reports whether the keep-alive renews the lease at present. Even with keep-alive off it
// renews a lease that was handed over, until that has its whole TTL.
func (t term) renews() bool {
	return (t.keepAlive || t.provisional) && !t.capped && !t.stalled
}

// attention returns when the keep-alive must check the lease next: at the next renewal, or at the
// deadline if that comes first.
func (t term) attention() time.Time {
	if t.renews() {
		return earlier(t.renewAt, t.deadline.Mono)
	}
	return t.deadline.Mono
}

// due reports whether a renewal is due now. With joining, it may join a batch that is sent anyway,
// and be a little early.
func (t term) due(now instant, joining bool, pace time.Duration) bool {
	at := t.renewAt
	if joining {
		at = at.Add(-min(t.presentTTL(), pace) / batchingPart)
	}
	return t.renews() && !now.Mono.Before(at)
}

// stoodBack puts off a renewal that is due by a share, from 0 to 1, of the time by which a renewal
// may be early. It does not put off a renewal if less than half of the TTL is left, or one that
// was made due before its usual time.
func (t term) stoodBack(now instant, share float64, pace time.Duration) term {
	longest := min(t.presentTTL(), pace) / batchingPart
	if !t.due(now, false, pace) || t.renewAt.Before(t.nextRenewal(pace)) || now.Until(t.deadline) < t.presentTTL()/2 {
		return t
	}
	t.renewAt = now.Mono.Add(1 + time.Duration(share*float64(longest)))
	return t
}

// nextRenewal returns when the lease must be renewed: when too little of its time is left, or pace
// after the last granted request, whichever is earlier.
func (t term) nextRenewal(pace time.Duration) time.Time {
	part := renewalRemaining
	if t.provisional {
		part = confirmRemaining
	}
	at := t.deadline.Mono.Add(-time.Duration(float64(t.presentTTL()) * part))
	return earlier(at, t.heard.Add(pace))
}

// presentTTL returns the TTL by which renewals are timed. For a lease that does not have its whole
// TTL yet it is at most places.LongestTTL.
func (t term) presentTTL() time.Duration {
	if t.provisional {
		return min(t.ttl, places.LongestTTL)
	}
	return t.ttl
}

// An extension is the content of one request to extend.
type extension struct {
	ttl    time.Duration // how long the holder uses the lease
	stored time.Duration // how long the store keeps it: ttl with the lock delay
	capped bool          // ttl is all that is left of MaxHold
}

// bounded returns the extension to ttl, or to the rest of MaxHold if that is shorter. It returns
// false if the result is less than MinTTL.
func (t term) bounded(ttl time.Duration, now instant) (x extension, ok bool) {
	if t.maxHold > 0 {
		left := now.Until(t.began.Add(t.maxHold)).Truncate(time.Millisecond)
		ttl, x.capped = min(ttl, left), ttl >= left
	}
	x.ttl, x.stored = ttl, ttl+t.lockDelay
	return x, ttl >= MinTTL
}

// renewing returns the renewal that the keep-alive must send now. It returns false if the holder
// has stalled or MaxHold has ended. The lease then ends at its deadline, and cause returns the
// reason.
func (t term) renewing(now instant) (term, extension, bool) {
	if t.patience > 0 && now.Mono.Sub(t.heartbeat) >= t.patience {
		t.stalled = true
		return t, extension{}, false
	}
	x, ok := t.bounded(t.ttl, now)
	if !ok {
		t.capped = true
		return t, x, false
	}
	t.renewAt = now.Mono.Add(t.presentTTL() / unansweredPart) // unless a reply comes first
	return t, x, true
}

// asked notes a request to extend that is about to be sent. From now on the store may keep the
// lease for x.stored.
func (t term) asked(x extension, now instant) term {
	t.longest = max(t.longest, x.stored)
	t.expiry = later(t.expiry, now.Mono.Add(x.stored))
	t.underway++
	return t
}

// landed notes the end of a request to extend. Unless it was refused, the store may have carried
// it out as late as now.
func (t term) landed(x extension, refused bool, now instant) term {
	if !refused {
		t.expiry = later(t.expiry, now.Mono.Add(x.stored))
	}
	t.underway--
	return t
}

// renewed notes the reply to a request to extend that was sent at sent. The deadline only moves
// later: the reply does not change it if another reply has extended the lease further, or if the
// machine was suspended in between.
func (t term) renewed(x extension, sent, now instant, pace time.Duration) term {
	t.provisional = t.provisional && x.ttl < t.ttl && !x.capped
	end := sent.Add(trusted(x.ttl))
	if last := t.began.Add(t.maxHold); t.maxHold > 0 && end.Mono.After(last.AsOf(now).Mono) {
		end, x.capped = last, true // the process was paused before it sent the request
	}
	t.capped = t.capped || x.capped
	// Both are compared as of now: the machine may have been suspended between them.
	t.deadline = t.deadline.AsOf(now)
	if end = end.AsOf(now); end.Mono.After(t.deadline.Mono) {
		t.deadline = end
	}
	t.heard, t.trouble = later(t.heard, sent.Mono), nil
	t.renewAt = t.nextRenewal(pace)
	return t
}

// failed notes why a renewal failed, and schedules a retry soon. INVARIANT I9: a failed renewal is
// retried until the deadline.
func (t term) failed(why error, now instant, pace time.Duration) term {
	pause := min(t.presentTTL()/retryDivisor, pace)
	t.renewAt = earlier(t.renewAt, now.Mono.Add(pause))
	t.trouble = why
	return t
}

// hurried makes a renewal due now.
func (t term) hurried(now time.Time) term {
	t.renewAt = now
	return t
}

// woken moves the deadline to the instant that the boot-time clock gives, if the machine was
// suspended during the lease. It also makes a renewal due, unless the difference may come from
// slewing.
func (t term) woken(now instant) term {
	end := t.deadline.AsOf(now)
	lost := t.deadline.Mono.Sub(end.Mono)
	if lost < suspensionShortest {
		return t
	}
	t.deadline = end
	if lost > slewedMost {
		t.renewAt = earlier(t.renewAt, now.Mono)
	}
	return t
}

// beat notes a call of Heartbeat. It reports whether the lease had stalled; a renewal is then due
// at once.
func (t term) beat(now time.Time) (_ term, resumed bool) {
	t.heartbeat, resumed = now, t.stalled
	if resumed {
		t.stalled, t.renewAt = false, now
	}
	return t, resumed
}

// keptAlive sets how the lease is kept alive from now on.
func (t term) keptAlive(o *AcquireOptions, now time.Time) term {
	t.keepAlive, t.patience, t.heartbeat = o.KeepAlive == KeepAliveOn, o.StallAfter, now
	return t
}

// lengthenedBy returns the TTL that moves the deadline later by d.
func (t term) lengthenedBy(d time.Duration, now time.Time) time.Duration {
	return max(MinTTL, ttlFor(t.deadline.Mono.Sub(now)+d))
}

// expiresBy returns the latest time at which the lease may expire in the store, whichever of this
// client's requests it has carried out. A request that is under way may reach it now.
func (t term) expiresBy(now time.Time) time.Time {
	if t.underway > 0 {
		return now.Add(t.longest)
	}
	return t.expiry
}

// awaitUntil returns until when Release waits for the reply: for timeout, but not beyond the
// expiry, when the lock is free anyway.
func (t term) awaitUntil(now time.Time, timeout time.Duration) time.Time {
	return earlier(now.Add(timeout), t.expiresBy(now))
}

// repeatUntil returns until when a release is repeated: until the expiry, but for releaseLeast at
// least, because the store's clock decides. A release that has to leave a tombstone is repeated
// for as long as an old acquire may still arrive.
func (t term) repeatUntil(now time.Time, tombstone bool) time.Time {
	least := releaseLeast
	if tombstone {
		least = driver.TombstoneTTL // INVARIANT I5
	}
	return later(t.expiresBy(now), now.Add(least))
}

// releaseLeast is how long the client tries to release a lease in the background even if it
// should have expired.
const releaseLeast = time.Second

// keepFor returns how much of MinHold is left. A release keeps the name closed for that time.
func (t term) keepFor(now instant) time.Duration {
	return max(0, ceilMS(now.Until(t.began.Add(t.minHold))))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
