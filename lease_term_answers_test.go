package holdfast

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestTermAnswers is the table of what a term is asked, but for its times.
func TestTermAnswers(t *testing.T) {
	type opts = AcquireOptions
	stalled, _, _ := held(opts{Progress: sec}).renewing(at(sec))
	capped := held(opts{MaxHold: 30 * sec})
	both := capped
	both.stalled = true
	for why, c := range map[string]struct{ got, want any }{
		"not over a moment before the deadline":             {held(opts{}).over(at(29698*ms - 1)), false},
		"over at the deadline":                              {held(opts{}).over(at(29698 * ms)), true},
		"over if only the boot-time clock says so":          {held(opts{}).over(suspended(sec, 28698*ms)), true},
		"a place is over when its lease would be":           {placeOver(at(0), at(4948*ms), 5*sec), true},
		"a place lasts for as long as its lease would":      {placeOver(at(0), at(4948*ms-1), 5*sec), false},
		"remaining goes by the clock that says less":        {held(opts{}).remaining(suspended(sec, 10*sec)), 18698 * ms},
		"nothing remains of what is over":                   {held(opts{}).remaining(at(time.Hour)), time.Duration(0)},
		"why: the store could not be reached":               {held(opts{}).cause(), errExpired},
		"why: MaxHold":                                      {capped.cause(), errMaxHold},
		"why: no progress":                                  {stalled.cause(), errStalled},
		"why: nobody could have renewed it, progress or no": {both.cause(), errMaxHold},

		"a renewal is not due a moment early":                             {held(opts{}).due(at(5*sec-1), false, pace), false},
		"a renewal is due":                                                {held(opts{}).due(at(5*sec), false, pace), true},
		"a renewal joins others by a tenth of the pace":                   {held(opts{}).due(at(4500*ms), true, pace), true},
		"and by no more":                                                  {held(opts{}).due(at(4500*ms-1), true, pace), false},
		"a short lease joins others by a tenth of its TTL":                {held(opts{TTL: 300 * ms}).due(at(65*ms), true, pace), true},
		"and no sooner":                                                   {held(opts{TTL: 300 * ms}).due(at(65*ms-1), true, pace), false},
		"the caller extends":                                              {held(opts{KeepAlive: KeepAliveOff}).due(at(20*sec), false, pace), false},
		"the caller extends what is confirmed":                            {extended(placed(opts{KeepAlive: KeepAliveOff}), 30*sec, at(sec), at(sec)).renews(), false},
		"no renewal helps against MaxHold":                                {capped.due(at(20*sec), false, pace), false},
		"a stalled worker is not renewed":                                 {stalled.due(at(20*sec), false, pace), false},
		"a moment before the patience is over, a renewal goes out":        {ok(held(opts{Progress: sec}).renewing(at(sec - 1))), true},
		"progress that nobody waited for wakes nobody":                    {resumed(held(opts{}).progressed(at(sec).mono)), false},
		"progress after a stall wakes the keep-alive":                     {resumed(stalled.progressed(at(2 * sec).mono)), true},
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
		"with nothing under way the store's end is known":                 {since(held(opts{}).expiresBy(at(9 * sec).mono)), 30 * sec},
		"what is under way may reach the store now":                       {since(held(opts{}).asked(x(sec), at(sec)).expiresBy(at(9 * sec).mono)), 39 * sec},
		"what is under way may be the longest that was ever sent":         {since(held(opts{}).asked(x(time.Minute), at(sec)).expiresBy(at(9 * sec).mono)), 69 * sec},
		"one of two requests is still under way":                          {since(held(opts{}).asked(x(sec), at(sec)).asked(x(sec), at(sec)).landed(x(sec), true, at(sec)).expiresBy(at(9 * sec).mono)), 39 * sec},
		"a request that has landed is under way no more":                  {since(held(opts{}).asked(x(sec), at(sec)).landed(x(sec), true, at(sec)).expiresBy(at(9 * sec).mono)), 30 * sec},
		"an acquire that is not granted yet may be carried out now":       {since(blank(opts{LockDelay: sec}).expiresBy(at(9 * sec).mono)), 40 * sec},
		"a release is waited for as long as a request may take":           {since(held(opts{}).awaitUntil(at(9*sec).mono, 5*sec)), 14 * sec},
		"and not beyond the expiry, when the lock is free without it":     {since(held(opts{}).awaitUntil(at(29*sec).mono, 5*sec)), 30 * sec},
		"a release is repeated until the expiry":                          {since(held(opts{}).repeatUntil(at(9*sec).mono, false)), 30 * sec},
		"and for a moment after it: the store counts for itself":          {since(held(opts{}).repeatUntil(at(31*sec).mono, false)), 32 * sec},
		"an acquire under way must meet a tombstone, so long as it lasts": {since(held(opts{}).repeatUntil(at(9*sec).mono, true)), 69 * sec},
		"but a lease that lasts longer must be released":                  {since(held(opts{TTL: time.Hour}).repeatUntil(at(9*sec).mono, true)), time.Hour},
		"to push the deadline out, the TTL counts what is left too":       {held(opts{}).lengthenedBy(10*sec, at(sec).mono), ttlFor(38698 * ms)},
		"no request asks for less than the least TTL":                     {held(opts{TTL: MinTTL}).lengthenedBy(1, at(7*ms).mono), MinTTL},
	} {
		if err, isErr := c.got.(error); isErr && errors.Is(err, c.want.(error)) {
			continue
		}
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", why, c.got, c.want)
		}
	}
}

// x is an extension to ttl, with no lock delay.
func x(ttl time.Duration) extension { return extension{ttl: ttl, stored: ttl} }

func since(at time.Time) time.Duration { return at.Sub(zero.mono) }

func ok(_ term, _ extension, ok bool) bool { return ok }

func resumed(_ term, resumed bool) bool { return resumed }

func asks(x extension, ok bool) string {
	return fmt.Sprint(x.ttl, " ", x.stored, " ", x.capped, " ", ok)
}

// INVARIANT I3: ttlFor never returns a TTL that is trusted for less, nor one
// that is a millisecond too long.
func TestTTLForIsTheInverseOfTrusted(t *testing.T) {
	for range 10_000 {
		d := rand.N(MaxTTL / 2)
		ttl := ttlFor(d)
		if trusted(ttl) < d || trusted(ttl-ms) >= d+ms {
			t.Fatalf("a TTL of %s is trusted for %s, want %s", ttl, trusted(ttl), d)
		}
	}
}
