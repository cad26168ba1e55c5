package holdfast

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

const (
	ms   = time.Millisecond
	sec  = time.Second
	pace = hurriedPause
)

// zero is the instant from which the times of these tests count.
var zero = instant{Mono: time.Now(), Boot: time.Hour}

func at(d time.Duration) instant { return zero.Add(d) }

// suspended returns the instant at which the timers have counted d, on a machine that was suspended
// for asleep since zero.
func suspended(d, asleep time.Duration) instant {
	i := at(d)
	i.Boot += asleep
	return i
}

// show describes a term.
func show(t term) string {
	s := fmt.Sprintf("until %s, look at %s, stored until %s", since(t.deadline.Mono), since(t.attention()), since(t.expiry))
	for _, flag := range []struct {
		set  bool
		name string
	}{{t.provisional, "provisional"}, {t.capped, "capped"}, {t.stalled, "stalled"}} {
		if flag.set {
			s += ", " + flag.name
		}
	}
	return s
}

// blank returns the term of a lease that is requested, with a TTL of 30 s if o has none.
func blank(o AcquireOptions) term {
	if o.TTL == 0 {
		o.TTL = 30 * sec
	}
	return newTerm(&o, o.TTL+o.LockDelay)
}

// held returns a term that was granted at zero.
func held(o AcquireOptions) term {
	t, ok := blank(o).granted(at(0), at(0), pace)
	if !ok {
		panic("a grant in no time is late")
	}
	return t
}

// placed returns a term that was handed over at 1 s to a place that was last refreshed at zero.
func placed(o AcquireOptions) term {
	t, ok := blank(o).handedOver(at(0), at(sec), 5*sec, pace)
	if !ok {
		panic("a hand-over in good time is late")
	}
	return t
}

// extended returns t after an extension to ttl with these times of the request and the reply.
func extended(t term, ttl time.Duration, sent, answered instant) term {
	x, ok := t.bounded(ttl, sent)
	if !ok {
		panic("there is nothing to ask for")
	}
	return t.asked(x, sent).landed(x, false, answered).renewed(x, sent, answered, pace)
}

// begun describes the result of a grant or a hand-over.
func begun(t term, ok bool) string {
	if !ok {
		return "late"
	}
	return show(t)
}

// TestTerm checks the arithmetic of leases. A TTL of 30 s is trusted for 26.998 s, a place of 5 s
// for 4.498 s.
func TestTerm(t *testing.T) {
	type opts = AcquireOptions
	for why, c := range map[string]struct{ got, want string }{
		// A grant.
		"a deadline counts from before the request; the expiry may count from the answer": {
			begun(blank(opts{}).granted(at(0), at(2*sec), pace)),
			"until 26.998s, look at 5s, stored until 32s"},
		"what ends at this instant is over": {
			begun(blank(opts{}).granted(at(0), at(26998*ms), pace)),
			"late"},
		"what is left is of use, however little": {
			begun(blank(opts{}).granted(at(0), at(26998*ms-1), pace)),
			"until 26.998s, look at 5s, stored until 56.997999999s"},
		"while the answer was under way the machine slept, and timers did not count that": {
			begun(blank(opts{}).granted(at(0), suspended(sec, 10*sec), pace)),
			"until 16.998s, look at -2ms, stored until 31s"},
		"the machine slept for as long as the lease lasts": {
			begun(blank(opts{}).granted(at(0), suspended(sec, 25998*ms), pace)),
			"late"},
		"with many leases the pace is slow, and a third of the TTL decides": {
			begun(blank(opts{}).granted(at(0), at(0), time.Hour)),
			"until 26.998s, look at 9.998s, stored until 30s"},
		"nobody renews what the caller extends, so the next event is the deadline": {
			show(held(opts{KeepAlive: KeepAliveOff})),
			"until 26.998s, look at 26.998s, stored until 30s"},
		"the least TTL leaves time for several renewals": {
			show(held(opts{TTL: MinTTL})),
			"until 7ms, look at 1.333334ms, stored until 10ms"},
		"the store keeps the lease for the lock delay beyond its TTL": {
			show(held(opts{LockDelay: 10 * sec})),
			"until 26.998s, look at 5s, stored until 40s"},
		"MaxHold is as long as the TTL: there is nothing to renew": {
			show(held(opts{MaxHold: 30 * sec})),
			"until 26.998s, look at 26.998s, stored until 30s, capped"},
		"MaxHold is longer than the TTL: the cap comes with a renewal": {
			show(held(opts{MaxHold: 30*sec + ms})),
			"until 26.998s, look at 5s, stored until 30s"},

		// Many renewals.
		"very many are due: this one can wait": {
			show(held(opts{}).stoodBack(at(5*sec), 0.5, pace)),
			"until 26.998s, look at 5.250000001s, stored until 30s"},
		"what is not due does not move": {
			show(held(opts{}).stoodBack(at(4*sec), 0.5, pace)),
			"until 26.998s, look at 5s, stored until 30s"},
		"what is to be asked at once is asked in any crowd": {
			show(held(opts{}).hurried(at(2*sec).Mono).stoodBack(at(2*sec), 0.5, pace)),
			"until 26.998s, look at 2s, stored until 30s"},
		"half of the TTL is over: there is no time to wait": {
			show(held(opts{}).stoodBack(at(15*sec), 0.5, pace)),
			"until 26.998s, look at 5s, stored until 30s"},

		// A hand-over.
		"what was handed over lasts as long as the place, and asks soon for its TTL": {
			show(placed(opts{})),
			"until 4.498s, look at 1.1s, stored until 31s, provisional"},
		"the place is over at this instant": {
			begun(blank(opts{}).handedOver(at(0), at(4498*ms), 5*sec, pace)),
			"late"},
		"half of the place is used up: the rest must not wait": {
			begun(blank(opts{}).handedOver(at(0), at(2400*ms), 5*sec, pace)),
			"until 4.498s, look at 2.498s, stored until 32.4s, provisional"},
		"the place lasts as long as the TTL: nothing is to be confirmed": {
			begun(blank(opts{TTL: 300 * ms}).handedOver(at(0), at(180*ms), 500*ms, pace)),
			"until 448ms, look at 278ms, stored until 480ms"},
		"the place lasts longer than the TTL: the holder trusts what it asked for": {
			begun(blank(opts{TTL: 300 * ms}).handedOver(at(0), at(100*ms), 500*ms, pace)),
			"until 368ms, look at 198ms, stored until 400ms"},
		"the place ends a moment before the TTL would": {
			begun(blank(opts{TTL: 300 * ms}).handedOver(at(0), at(180*ms+1), 500*ms, pace)),
			"until 448ms, look at 280.000001ms, stored until 480.000001ms, provisional"},
		"the machine slept in the queue": {
			begun(blank(opts{}).handedOver(at(0), suspended(sec, 2*sec), 5*sec, pace)),
			"until 2.498s, look at 498ms, stored until 31s, provisional"},
		"the machine slept in the queue, so that less is left of the place than of a short TTL": {
			begun(blank(opts{TTL: 300 * ms}).handedOver(at(0), suspended(100*ms, 150*ms), 500*ms, pace)),
			"until 298ms, look at 178ms, stored until 400ms, provisional"},
		"whoever extends by hand is given the whole TTL all the same": {
			show(placed(opts{KeepAlive: KeepAliveOff})),
			"until 4.498s, look at 1.1s, stored until 31s, provisional"},
		"MaxHold is as long as the TTL, but the lease does not have that yet": {
			show(placed(opts{MaxHold: 30 * sec})),
			"until 4.498s, look at 1.1s, stored until 31s, provisional"},

		// A reply to an extension.
		"a renewal counts from before it was sent, and the expiry from its answer": {
			show(extended(held(opts{}), 30*sec, at(5*sec), at(7*sec))),
			"until 31.998s, look at 10s, stored until 37s"},
		"an answer that was overtaken by a later one moves no deadline; it may come from a store that was as slow": {
			show(extended(extended(held(opts{}), 30*sec, at(5*sec), at(7*sec)), 30*sec, at(4*sec), at(8*sec))),
			"until 31.998s, look at 10s, stored until 38s"},
		"a shorter extension never shortens": {
			show(extended(held(opts{}), 10*sec, at(5*sec), at(5*sec))),
			"until 26.998s, look at 9.998s, stored until 30s"},
		"the machine slept while the answer was under way": {
			show(extended(held(opts{}), 30*sec, at(5*sec), suspended(7*sec, 10*sec))),
			"until 21.998s, look at 4.998s, stored until 37s"},
		"the machine slept before the request: the old deadline moves, the new one counts": {
			show(extended(held(opts{}), 10*sec, suspended(5*sec, 15*sec), suspended(5*sec, 15*sec))),
			"until 13.998s, look at -3.002s, stored until 30s"},
		"a confirmation brings the whole TTL": {
			show(extended(placed(opts{}), 30*sec, at(1100*ms), at(1200*ms))),
			"until 28.098s, look at 6.1s, stored until 31.2s"},
		"a shorter extension confirms nothing": {
			show(extended(placed(opts{}), 10*sec, at(1100*ms), at(1200*ms))),
			"until 10.098s, look at 6.1s, stored until 31s, provisional"},
		"all that MaxHold leaves is as good as the whole TTL": {
			show(extended(placed(opts{MaxHold: 30 * sec}), 30*sec, at(1100*ms), at(1200*ms))),
			"until 28.008s, look at 28.008s, stored until 31.1s, capped"},
		"MaxHold cuts the last renewal short": {
			show(extended(held(opts{MaxHold: 40 * sec}), 30*sec, at(20*sec), at(20*sec))),
			"until 37.998s, look at 37.998s, stored until 40s, capped"},
		"an answer that was not cut does not take the cap away": {
			show(extended(extended(held(opts{MaxHold: 40 * sec}), 30*sec, at(20*sec), at(20*sec)), 10*sec, at(20*sec), at(20*sec))),
			"until 37.998s, look at 37.998s, stored until 40s, capped"},
		"a pause between the cut and the sending must not lead beyond MaxHold": {
			func() string {
				held := held(opts{MaxHold: 40 * sec})
				x, _ := held.bounded(30*sec, at(20*sec))
				return show(held.renewed(x, at(23*sec), at(23*sec), pace))
			}(),
			"until 40s, look at 40s, stored until 30s, capped"},
		"MaxHold counts while the machine sleeps": {
			show(extended(held(opts{MaxHold: 40 * sec}), 30*sec, suspended(5*sec, 15*sec), suspended(5*sec, 15*sec))),
			"until 22.998s, look at 22.998s, stored until 30s, capped"},

		// The keep-alive.
		"while no answer comes, another renewal follows after a sixth of the TTL": {
			func() string { t, _, _ := held(opts{}).renewing(at(9 * sec)); return show(t) }(),
			"until 26.998s, look at 14s, stored until 30s"},
		"no other renewal is to come before the deadline, so that is the next event": {
			func() string { t, _, _ := held(opts{}).renewing(at(25 * sec)); return show(t) }(),
			"until 26.998s, look at 26.998s, stored until 30s"},
		"a confirmation is repeated by the time that the place leaves": {
			func() string { t, _, _ := placed(opts{}).renewing(at(2 * sec)); return show(t) }(),
			"until 4.498s, look at 2.833333333s, stored until 31s, provisional"},
		"without a heartbeat nothing is renewed": {
			func() string { t, _, _ := held(opts{StallAfter: 5 * sec}).renewing(at(5 * sec)); return show(t) }(),
			"until 26.998s, look at 26.998s, stored until 30s, stalled"},
		"MaxHold leaves less than the least TTL": {
			func() string { t, _, _ := held(opts{MaxHold: 31 * sec}).renewing(at(31*sec - 9*ms)); return show(t) }(),
			"until 26.998s, look at 26.998s, stored until 30s, capped"},
		"a renewal that failed is repeated after a twentieth of the TTL": {
			func() string {
				t, _, _ := held(opts{}).renewing(at(9 * sec))
				return show(t.failed(errNoReply, at(9*sec), pace))
			}(),
			"until 26.998s, look at 10.5s, stored until 30s"},
		"of a long TTL a twentieth is too long to leave a failure": {
			func() string {
				t, _, _ := held(opts{TTL: time.Hour}).renewing(at(9 * sec))
				return show(t.failed(errNoReply, at(9*sec), pace))
			}(),
			"until 53m59.998s, look at 14s, stored until 1h0m0s"},
		"a failure delays no renewal that is due sooner": {
			show(held(opts{}).failed(errNoReply, at(4*sec), pace)),
			"until 26.998s, look at 5s, stored until 30s"},
		"time to look": {
			show(held(opts{}).hurried(at(sec).Mono)),
			"until 26.998s, look at 1s, stored until 30s"},

		// A suspension.
		"the deadline comes sooner on the clock of the timers, and the lease is asked for": {
			show(held(opts{}).woken(suspended(sec, 10*sec))),
			"until 16.998s, look at 1s, stored until 30s"},
		"clocks that are read one after the other differ a little": {
			show(held(opts{}).woken(suspended(sec, 10*ms-1))),
			"until 26.998s, look at 5s, stored until 30s"},
		"the clock of the timers is slewed back: the deadline comes sooner, and that is all": {
			show(held(opts{}).woken(suspended(sec, 200*ms))),
			"until 26.798s, look at 5s, stored until 30s"},
		"more than slewing can make of a second": {
			show(held(opts{}).woken(suspended(sec, 200*ms+1))),
			"until 26.797999999s, look at 1s, stored until 30s"},
		"the clock of the timers is slewed forward: it decides by itself": {
			show(held(opts{}).woken(suspended(sec, -100*ms))),
			"until 26.998s, look at 5s, stored until 30s"},
		"a renewal that is due already is not put off": {
			show(held(opts{}).hurried(at(0).Mono).woken(suspended(sec, 10*sec))),
			"until 16.998s, look at 0s, stored until 30s"},
		"a system without a boot-time clock": {
			show(held(opts{}).woken(instant{Mono: at(sec).Mono})),
			"until 26.998s, look at 5s, stored until 30s"},

		// Calls of the holder.
		"a heartbeat after a stall renews at once": {
			func() string {
				t, _, _ := held(opts{StallAfter: 5 * sec}).renewing(at(5 * sec))
				t, _ = t.beat(at(6 * sec).Mono)
				return show(t)
			}(),
			"until 26.998s, look at 6s, stored until 30s"},
		"a heartbeat in good time changes nothing": {
			func() string { t, _ := held(opts{StallAfter: 5 * sec}).beat(at(4 * sec).Mono); return show(t) }(),
			"until 26.998s, look at 5s, stored until 30s"},
		"what AcquireAll kept alive is left to its caller": {
			show(held(opts{}).keptAlive(&opts{KeepAlive: KeepAliveOff}, at(sec).Mono)),
			"until 26.998s, look at 26.998s, stored until 30s"},
		"heartbeats count from when the caller has the lease": {
			func() string {
				t, _, ok := held(opts{}).keptAlive(&opts{StallAfter: 5 * sec}, at(3*sec).Mono).renewing(at(7 * sec))
				return fmt.Sprint(ok, " ", show(t))
			}(),
			"true until 26.998s, look at 12s, stored until 30s"},

		// The latest expiry in the store.
		"a request that is sent may be carried out": {
			show(held(opts{LockDelay: 10 * sec}).asked(extension{60 * sec, 70 * sec, false}, at(sec))),
			"until 26.998s, look at 5s, stored until 1m11s"},
		"a request without an answer may have been carried out as late as now": {
			show(held(opts{}).landed(x(30*sec), false, at(20*sec))),
			"until 26.998s, look at 5s, stored until 50s"},
		"a request that was refused has done nothing": {
			show(held(opts{}).landed(x(30*sec), true, at(20*sec))),
			"until 26.998s, look at 5s, stored until 30s"},
		"a short request does not make the store forget a long one": {
			show(held(opts{}).asked(x(10*sec), at(sec))),
			"until 26.998s, look at 5s, stored until 30s"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", why, c.got, c.want)
		}
	}
}

// TestTermAnswers checks the results of the methods that return no term.
func TestTermAnswers(t *testing.T) {
	type opts = AcquireOptions
	stalled, _, _ := held(opts{StallAfter: sec}).renewing(at(sec))
	capped := held(opts{MaxHold: 30 * sec})
	both := capped
	both.stalled = true
	for why, c := range map[string]struct{ got, want any }{
		"not over a moment before the deadline":              {held(opts{}).over(at(26998*ms - 1)), false},
		"over at the deadline":                               {held(opts{}).over(at(26998 * ms)), true},
		"over if only the boot-time clock says so":           {held(opts{}).over(suspended(sec, 25998*ms)), true},
		"a place is over when its lease would be":            {placeOver(at(0), at(4498*ms), 5*sec), true},
		"a place lasts for as long as its lease would":       {placeOver(at(0), at(4498*ms-1), 5*sec), false},
		"remaining goes by the clock that says less":         {held(opts{}).remaining(suspended(sec, 10*sec)), 15998 * ms},
		"nothing remains of what is over":                    {held(opts{}).remaining(at(time.Hour)), time.Duration(0)},
		"why: the store could not be reached":                {held(opts{}).cause(), errExpired},
		"why: MaxHold":                                       {capped.cause(), errMaxHold},
		"why: no heartbeat":                                  {stalled.cause(), errStalled},
		"why: nobody could have renewed it, heartbeat or no": {both.cause(), errMaxHold},

		"a renewal is not due a moment early":                             {held(opts{}).due(at(5*sec-1), false, pace), false},
		"a renewal is due":                                                {held(opts{}).due(at(5*sec), false, pace), true},
		"a renewal joins others by a tenth of the pace":                   {held(opts{}).due(at(4500*ms), true, pace), true},
		"and by no more":                                                  {held(opts{}).due(at(4500*ms-1), true, pace), false},
		"a short lease joins others by a tenth of its TTL":                {held(opts{TTL: 300 * ms}).due(at(68*ms), true, pace), true},
		"and no sooner":                                                   {held(opts{TTL: 300 * ms}).due(at(68*ms-1), true, pace), false},
		"the caller extends":                                              {held(opts{KeepAlive: KeepAliveOff}).due(at(20*sec), false, pace), false},
		"the caller extends what is confirmed":                            {extended(placed(opts{KeepAlive: KeepAliveOff}), 30*sec, at(sec), at(sec)).renews(), false},
		"no renewal helps against MaxHold":                                {capped.due(at(20*sec), false, pace), false},
		"a stalled worker is not renewed":                                 {stalled.due(at(20*sec), false, pace), false},
		"a moment before the patience is over, a renewal goes out":        {ok(held(opts{StallAfter: sec}).renewing(at(sec - 1))), true},
		"a heartbeat that nobody waited for wakes nobody":                 {resumed(held(opts{}).beat(at(sec).Mono)), false},
		"a heartbeat after a stall wakes the keep-alive":                  {resumed(stalled.beat(at(2 * sec).Mono)), true},
		"without MaxHold an extension is as it was wanted":                {asks(held(opts{LockDelay: sec}).bounded(time.Minute, at(sec))), "1m0s 1m1s false true"},
		"MaxHold leaves enough":                                           {asks(held(opts{MaxHold: time.Hour}).bounded(time.Minute, at(sec))), "1m0s 1m0s false true"},
		"MaxHold leaves just that: no later one can ask for more":         {asks(held(opts{MaxHold: time.Hour}).bounded(time.Minute, at(59*time.Minute))), "1m0s 1m0s true true"},
		"MaxHold leaves less, in whole milliseconds, never more":          {asks(held(opts{MaxHold: time.Hour, LockDelay: sec}).bounded(2*time.Minute, at(59*time.Minute+1))), "59.999s 1m0.999s true true"},
		"MaxHold leaves the least TTL":                                    {asks(held(opts{MaxHold: time.Hour}).bounded(time.Minute, at(time.Hour-MinTTL))), "10ms 10ms true true"},
		"MaxHold leaves too little for a request":                         {asks(held(opts{MaxHold: time.Hour}).bounded(time.Minute, at(time.Hour-MinTTL+1))), "9ms 9ms true false"},
		"a release keeps the name closed for what MinHold leaves":         {held(opts{MinHold: 10 * sec}).keepFor(at(4 * sec)), 6 * sec},
		"in whole milliseconds, never less":                               {held(opts{MinHold: 10 * sec}).keepFor(at(10*sec - 1)), ms},
		"nothing is left of MinHold":                                      {held(opts{MinHold: 10 * sec}).keepFor(at(10 * sec)), time.Duration(0)},
		"a suspension counts for MinHold too":                             {held(opts{MinHold: 10 * sec}).keepFor(suspended(sec, 4*sec)), 5 * sec},
		"MinHold of a hand-over counts from when we heard of it":          {placed(opts{MinHold: 10 * sec}).keepFor(at(2 * sec)), 9 * sec},
		"with nothing under way the store's end is known":                 {since(held(opts{}).expiresBy(at(9 * sec).Mono)), 30 * sec},
		"what is under way may reach the store now":                       {since(held(opts{}).asked(x(sec), at(sec)).expiresBy(at(9 * sec).Mono)), 39 * sec},
		"what is under way may be the longest that was ever sent":         {since(held(opts{}).asked(x(time.Minute), at(sec)).expiresBy(at(9 * sec).Mono)), 69 * sec},
		"one of two requests is still under way":                          {since(held(opts{}).asked(x(sec), at(sec)).asked(x(sec), at(sec)).landed(x(sec), true, at(sec)).expiresBy(at(9 * sec).Mono)), 39 * sec},
		"a request that has landed is under way no more":                  {since(held(opts{}).asked(x(sec), at(sec)).landed(x(sec), true, at(sec)).expiresBy(at(9 * sec).Mono)), 30 * sec},
		"an acquire that is not granted yet may be carried out now":       {since(blank(opts{LockDelay: sec}).expiresBy(at(9 * sec).Mono)), 40 * sec},
		"a release is waited for as long as a request may take":           {since(held(opts{}).awaitUntil(at(9*sec).Mono, 5*sec)), 14 * sec},
		"and not beyond the expiry, when the lock is free without it":     {since(held(opts{}).awaitUntil(at(29*sec).Mono, 5*sec)), 30 * sec},
		"a release is repeated until the expiry":                          {since(held(opts{}).repeatUntil(at(9*sec).Mono, false)), 30 * sec},
		"and for a moment after it: the store counts for itself":          {since(held(opts{}).repeatUntil(at(31*sec).Mono, false)), 32 * sec},
		"an acquire under way must meet a tombstone, so long as it lasts": {since(held(opts{}).repeatUntil(at(9*sec).Mono, true)), 69 * sec},
		"but a lease that lasts longer must be released":                  {since(held(opts{TTL: time.Hour}).repeatUntil(at(9*sec).Mono, true)), time.Hour},
		"to push the deadline out, the TTL counts what is left too":       {held(opts{}).lengthenedBy(10*sec, at(sec).Mono), ttlFor(35998 * ms)},
		"no request asks for less than the least TTL":                     {held(opts{TTL: MinTTL}).lengthenedBy(1, at(7*ms).Mono), MinTTL},
	} {
		if err, isErr := c.got.(error); isErr && errors.Is(err, c.want.(error)) {
			continue
		}
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", why, c.got, c.want)
		}
	}
}

// x returns an extension to ttl without a lock delay.
func x(ttl time.Duration) extension { return extension{ttl: ttl, stored: ttl} }

func since(at time.Time) time.Duration { return at.Sub(zero.Mono) }

func ok(_ term, _ extension, ok bool) bool { return ok }

func resumed(_ term, resumed bool) bool { return resumed }

func asks(x extension, ok bool) string {
	return fmt.Sprint(x.ttl, " ", x.stored, " ", x.capped, " ", ok)
}
