package holdfast

import (
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/places"
)

// A term is the arithmetic of one lease: until when its holder trusts it, when
// its renewals are due, and how long the store may keep it. It is a value that
// reads no clock, takes no lock and sends nothing: the caller passes
// the present instant, and gets an answer, or the next term. Only this file adds to the
// deadlines of leases or compares them; other files at most pick the first or the last
// of several.
//
// It follows two rules. INVARIANT I3: a deadline counts from before
// the request that earned it was sent, and no doubt moves it later. INVARIANT
// I8: a time that has passed on either of the local clocks has passed.
type term struct {
	ttl       time.Duration // of renewals
	lockDelay time.Duration // for how long the store keeps the lease beyond that
	minHold   time.Duration // from began, for the name; see keepFor
	maxHold   time.Duration // from began; 0: no bound
	patience  time.Duration // without a call of Heartbeat; 0: no bound
	keepAlive bool

	began     instant   // before the granting request was sent, or when we heard of the hand-over
	deadline  instant   // until when the lease is trusted
	heard     time.Time // when the last request was sent that the store has granted
	renewAt   time.Time // when the keep-alive sends the next renewal
	heartbeat time.Time // of the last call of Heartbeat

	provisional bool // handed over for the rest of its place: it does not have its whole TTL yet
	capped      bool // the deadline is as late as maxHold allows
	stalled     bool // a renewal was due but a heartbeat was overdue

	trouble error // why the last renewal failed; nil if it did not

	longest  time.Duration // the greatest TTL of all requests
	underway int           // requests without an answer that would lengthen the lease
	expiry   time.Time     // when the store ends it at the latest, except for those
}

// The part of a TTL that a holder does not use. The store's clock may be fast, or the
// holder's slow, while a time service slews it: by 8.4 % with chrony, and by 10 % at the
// most that it allows. docs/adr/0026-slewed-clocks.md has the sources, and why the
// part has no bound for long TTLs. The constant covers stores that count in
// milliseconds, timers that fire late, and slewFresh.
const (
	driftDivisor = 10
	driftFloor   = 2 * time.Millisecond
)

// When renewals are sent, as parts of the TTL. A lease is renewed after a third
// of its TTL, and again while no answer comes, so that several
// renewals fit before the deadline even if the store takes almost half of the
// TTL to answer.
const (
	renewalRemaining = 1 - 1.0/driftDivisor - 1.0/3 // a renewal is due when this part of the TTL is left
	unansweredPart   = 6                            // after a renewal without an answer, the next follows in 1/6
	retryDivisor     = 20                           // after a failed renewal, the next follows in 1/20
	batchingPart     = 10                           // a batch includes the renewals that are due within 1/10, or 1/10 of the pace

	// A lease that was handed over has used up part of its time, but not
	// more than a half unless refreshes of its place failed.
	confirmRemaining = 1.0/2 - 1.0/driftDivisor
)

// confirmAfter is when a lease that was handed over requests its whole TTL:
// after long enough for short work to be done without that request.
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

// granted begins the term with a grant: its request was sent at sent, and its
// answer is there now. It reports false if that came too late to be of use. pace
// is the longest pause between renewals; see leaseKeeper.pace.
func (t term) granted(sent, now instant, pace time.Duration) (term, bool) {
	t.began, t.deadline = sent, sent.Add(trusted(t.ttl))
	if now.Reached(t.deadline) {
		return t, false
	}
	return t.begun(now, pace), true
}

// handedOver begins the term with a notice of a hand-over, which is here now, or
// reports false if that came too late.
//
// INVARIANT I3: the lease ends with the place, which lasts waiterTTL from when
// the store saw a request of ours: no earlier than from queued, when we sent the
// last one that it answered. The store may have granted the lease at any time
// since, so that it counts as held from now on.
func (t term) handedOver(queued, now instant, waiterTTL, pace time.Duration) (term, bool) {
	t.began, t.deadline, t.provisional = now, queued.Add(trusted(waiterTTL)).AsOf(now), true
	if now.Reached(t.deadline) {
		return t, false
	}
	// A TTL may be shorter than the rest of the place, as seen now: a
	// suspension may lie in between. The holder then gets the TTL it requested, and
	// nothing is to be confirmed.
	if whole := now.Add(trusted(t.ttl)); !t.deadline.Mono.Before(whole.Mono) {
		t.deadline, t.provisional = whole, false
	}
	return t.begun(now, pace), true
}

// handedOn returns the term of the next turn of the lease in its cohort, which begins now. It
// ends when this one would.
func (t term) handedOn(alive KeepAlive, now instant) term {
	t.began = now
	return t.keptAlive(&AcquireOptions{KeepAlive: alive}, now.Mono)
}

// placeOver reports whether a place has ended, as far as we know: the lease
// that it became may not be trusted any more.
func placeOver(queued, now instant, waiterTTL time.Duration) bool {
	return now.Reached(queued.Add(trusted(waiterTTL)))
}

// begun fills in what follows from the beginning and the deadline.
func (t term) begun(now instant, pace time.Duration) term {
	t.deadline = t.deadline.AsOf(now)
	t.heard, t.heartbeat = t.began.Mono, t.began.Mono
	t.expiry, t.underway = now.Mono.Add(t.longest), 0 // it was granted before now
	t.capped = t.maxHold == t.ttl && !t.provisional
	t.renewAt = t.nextRenewal(pace)
	if t.provisional {
		t.renewAt = earlier(t.began.Mono.Add(confirmAfter), t.renewAt)
	}
	return t
}

// over reports whether the lease may not be trusted any more.
func (t term) over(now instant) bool { return now.Reached(t.deadline) }

// remaining returns how long it may be trusted from now on without a renewal.
func (t term) remaining(now instant) time.Duration { return max(0, now.Until(t.deadline)) }

// cause returns why the deadline passed.
func (t term) cause() error {
	switch {
	case t.capped:
		return errMaxHold
	case t.stalled:
		return errStalled
	case t.trouble != nil: // in words only: the loss is of no other class
		return fmt.Errorf("%w (the last renewal: %s)", errExpired, t.trouble.Error())
	}
	return errExpired
}

// renews reports whether the keep-alive renews the lease at present: even if it
// is off, until a lease that was handed over has its TTL.
func (t term) renews() bool {
	return (t.keepAlive || t.provisional) && !t.capped && !t.stalled
}

// attention returns when the keep-alive has to look next: at the renewal, or at
// the deadline if no renewal is to come before it.
func (t term) attention() time.Time {
	if t.renews() {
		return earlier(t.renewAt, t.deadline.Mono)
	}
	return t.deadline.Mono
}

// due reports whether a renewal is to be sent now. If others go out anyway
// (joining), it may be a little early.
func (t term) due(now instant, joining bool, pace time.Duration) bool {
	at := t.renewAt
	if joining {
		at = at.Add(-min(t.presentTTL(), pace) / batchingPart)
	}
	return t.renews() && !now.Mono.Before(at)
}

// stoodBack moves a renewal that is due, and can wait, by a share of the time that another may
// be early: not one that failed so often that half of the TTL has passed, and not one
// that is to be sent before its usual time.
func (t term) stoodBack(now instant, share float64, pace time.Duration) term {
	longest := min(t.presentTTL(), pace) / batchingPart
	if !t.due(now, false, pace) || t.renewAt.Before(t.nextRenewal(pace)) || now.Until(t.deadline) < t.presentTTL()/2 {
		return t
	}
	t.renewAt = now.Mono.Add(1 + time.Duration(share*float64(longest)))
	return t
}

// nextRenewal returns when the lease has to be renewed, because little of its
// time is left or because the last renewal was long ago.
func (t term) nextRenewal(pace time.Duration) time.Time {
	part := renewalRemaining
	if t.provisional {
		part = confirmRemaining
	}
	at := t.deadline.Mono.Add(-time.Duration(float64(t.presentTTL()) * part))
	return earlier(at, t.heard.Add(pace))
}

// presentTTL returns what renewals are timed by: the TTL, but until the lease
// has that no more than a waiter TTL.
func (t term) presentTTL() time.Duration {
	if t.provisional {
		return min(t.ttl, places.LongestTTL)
	}
	return t.ttl
}

// An extension is the content of one request to extend.
type extension struct {
	ttl    time.Duration // for the holder
	stored time.Duration // for the store: with the lock delay
	capped bool          // ttl is all that MaxHold leaves
}

// bounded returns the extension to ttl, shortened to the rest of MaxHold, or
// false if that is too short to be worth a request.
func (t term) bounded(ttl time.Duration, now instant) (x extension, ok bool) {
	if t.maxHold > 0 {
		left := now.Until(t.began.Add(t.maxHold)).Truncate(time.Millisecond)
		ttl, x.capped = min(ttl, left), ttl >= left
	}
	x.ttl, x.stored = ttl, ttl+t.lockDelay
	return x, ttl >= MinTTL
}

// renewing returns the renewal that the keep-alive is to send now, or false if
// there is no reason for one any more: then the lease ends at its deadline, for
// the reason that cause returns.
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
	t.renewAt = now.Mono.Add(t.presentTTL() / unansweredPart) // unless an answer comes
	return t, x, true
}

// asked notes a request to extend that is about to be sent: from now on the store may
// keep the lease for that long.
func (t term) asked(x extension, now instant) term {
	t.longest = max(t.longest, x.stored)
	t.expiry = later(t.expiry, now.Mono.Add(x.stored))
	t.underway++
	return t
}

// landed notes that an extension is under way no more. Unless it was refused, the
// store may have carried it out as late as now.
func (t term) landed(x extension, refused bool, now instant) term {
	if !refused {
		t.expiry = later(t.expiry, now.Mono.Add(x.stored))
	}
	t.underway--
	return t
}

// renewed notes the answer to an extension that was sent at sent. The deadline
// only moves later by it: an answer that was overtaken by a longer one, or that
// a suspension has made worthless, changes nothing.
func (t term) renewed(x extension, sent, now instant, pace time.Duration) term {
	t.provisional = t.provisional && x.ttl < t.ttl && !x.capped
	end := sent.Add(trusted(x.ttl))
	if last := t.began.Add(t.maxHold); t.maxHold > 0 && end.Mono.After(last.AsOf(now).Mono) {
		end, x.capped = last, true // there was a pause before the request was sent
	}
	t.capped = t.capped || x.capped
	// Both are compared as seen now: a suspension may lie between them.
	t.deadline = t.deadline.AsOf(now)
	if end = end.AsOf(now); end.Mono.After(t.deadline.Mono) {
		t.deadline = end
	}
	t.heard, t.trouble = later(t.heard, sent.Mono), nil
	t.renewAt = t.nextRenewal(pace)
	return t
}

// failed notes why a renewal failed, which is repeated soon. INVARIANT I9: a
// failed renewal is retried until the deadline.
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

// woken moves the deadline to where the boot-time clock puts it, and
// makes a renewal due, if the machine was suspended under the lease. It only moves the
// deadline if the difference may come from slewing.
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

// beat notes a call of Heartbeat. It reports whether that makes the
// keep-alive go on, which it does at once.
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

// lengthenedBy returns the TTL that pushes the deadline out by d.
func (t term) lengthenedBy(d time.Duration, now time.Time) time.Duration {
	return max(MinTTL, ttlFor(t.deadline.Mono.Sub(now)+d))
}

// expiresBy returns by when the store ends the lease by itself, whichever of our
// requests it has carried out: one that is under way may reach it now.
func (t term) expiresBy(now time.Time) time.Time {
	if t.underway > 0 {
		return now.Add(t.longest)
	}
	return t.expiry
}

// awaitUntil returns until when the answer to a release is waited for: for
// timeout, but not beyond the expiry, when the lock is free without it.
func (t term) awaitUntil(now time.Time, timeout time.Duration) time.Time {
	return earlier(now.Add(timeout), t.expiresBy(now))
}

// repeatUntil returns until when a release is repeated: until the expiry, and for a
// moment at least, because the store's clock decides. One that has to leave a
// tombstone is repeated for as long as an old acquire may still arrive.
func (t term) repeatUntil(now time.Time, tombstone bool) time.Time {
	least := releaseLeast
	if tombstone {
		least = driver.TombstoneTTL // INVARIANT I5
	}
	return later(t.expiresBy(now), now.Add(least))
}

// releaseLeast is how long the background tries to release a lease that should
// have expired.
const releaseLeast = time.Second

// keepFor returns what is left of MinHold, for which a release keeps the name
// closed.
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
