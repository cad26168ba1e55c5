package holdfast

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/internal/places"
)

// INVARIANT I3: whatever happens to a lease, and in whatever order answers
// come, it is never trusted for longer than a store that carried each request
// out as early as it could, and never taken to be gone before one that did so as
// late as it could.
func TestTermAgainstStores(t *testing.T) {
	for range 20_000 {
		checkAgainstStores(t)
		if t.Failed() {
			return
		}
	}
}

func checkAgainstStores(t *testing.T) {
	o := AcquireOptions{TTL: MinTTL << rand.IntN(13), LockDelay: []time.Duration{0, 7 * sec}[rand.IntN(2)], MaxHold: []time.Duration{0, time.Hour}[rand.IntN(2)]}
	o.TTL += ceilMS(rand.N(o.TTL))
	now, story := at(0), []string{}
	// A moment passes; the machine may sleep.
	pass := func(longest time.Duration) {
		now = now.add(rand.N(longest))
		if rand.IntN(10) == 0 {
			now.boot += rand.N(longest + sec/2)
		}
	}
	pass(sec)
	sent := now
	pass(o.TTL / 2)
	var l term
	var ok bool
	earliest := sent.add(o.TTL) // a store's end, by requests that were answered
	latest := now.mono.Add(o.TTL + o.LockDelay)
	if waiterTTL := min(max(o.TTL, places.ShortestTTL), places.LongestTTL); rand.IntN(2) == 0 && o.LockDelay == 0 {
		l, ok = newTerm(&o, max(o.TTL, waiterTTL)).handedOver(sent, now, waiterTTL, pace)
		earliest, latest = sent.add(waiterTTL), now.mono.Add(waiterTTL)
	} else {
		l, ok = newTerm(&o, o.TTL+o.LockDelay).granted(sent, now, pace)
	}
	if !ok {
		return // a waiter starts over then
	}
	type request struct {
		extension
		sent instant
	}
	var underway []request
	for range 20 {
		pass(o.TTL / 3)
		l = l.woken(now)
		if l.over(now) {
			break
		}
		if _, x, ok := l.renewing(now); ok && rand.IntN(2) == 0 {
			l = l.asked(x, now)
			underway = append(underway, request{x, now})
		}
		for i := len(underway) - 1; i >= 0; i-- {
			if rand.IntN(2) == 0 {
				continue
			}
			r := underway[i]
			underway = append(underway[:i:i], underway[i+1:]...)
			l = l.landed(r.extension, false, now)
			if at := now.mono.Add(r.stored); at.After(latest) {
				latest = at
			}
			story = append(story, fmt.Sprint("sent ", r.sent.mono.Sub(zero.mono), ", answered ", now.mono.Sub(zero.mono), ", for ", r.ttl))
			if rand.IntN(4) == 0 {
				l = l.failed(errNoReply, now, pace) // its reply was lost
				continue
			}
			l = l.renewed(r.extension, r.sent, now, pace)
			if at := r.sent.add(r.ttl); at.boot > earliest.boot {
				earliest = at
			}
		}
		// The store counts on when the machine sleeps, and so does the boot-time clock.
		left := l.remaining(now)
		if stored := earliest.boot - now.boot; left > stored {
			t.Errorf("trusted for %s, kept for %s: %s", left, stored, strings.Join(story, "; "))
		}
		if by := l.expiresBy(now.mono); len(underway) == 0 && by.Before(latest) {
			t.Errorf("taken to be gone %s before it is: %s", latest.Sub(by), strings.Join(story, "; "))
		}
		if o.MaxHold > 0 && now.until(l.deadline) > now.until(l.began.add(o.MaxHold)) {
			t.Errorf("trusted beyond MaxHold: %s", strings.Join(story, "; "))
		}
	}
}
