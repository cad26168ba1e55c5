package holdfast

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	ms   = time.Millisecond
	sec  = time.Second
	pace = hurriedPause
)

// errNoReply is why a renewal failed.
var errNoReply = errors.New("no reply")

// zero is where the times of these tests count from.
var zero = instant{time.Now(), time.Hour}

func at(d time.Duration) instant { return zero.add(d) }

// suspended is the instant at which the timers have counted d, on a machine that
// was suspended for asleep since zero.
func suspended(d, asleep time.Duration) instant {
	i := at(d)
	i.boot += asleep
	return i
}

// show writes down all that a term says about itself.
func show(t term) string {
	s := fmt.Sprintf("until %s, look at %s, stored until %s", since(t.deadline.mono), since(t.attention()), since(t.expiry))
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

// blank is the term of a lease that is asked for, with 30 s where o says nothing.
func blank(o AcquireOptions) term {
	if o.TTL == 0 {
		o.TTL = 30 * sec
	}
	return newTerm(&o, o.TTL+o.LockDelay)
}

// held is a term that was granted at once, at zero.
func held(o AcquireOptions) term {
	t, ok := blank(o).granted(at(0), at(0), pace)
	if !ok {
		panic("a grant in no time is late")
	}
	return t
}

// placed is a term that was handed over at 1 s, its place last renewed at zero.
func placed(o AcquireOptions) term {
	t, ok := blank(o).handedOver(at(0), at(sec), 5*sec, pace)
	if !ok {
		panic("a hand-over in good time is late")
	}
	return t
}

// extended is t after an extension to ttl that was sent and answered then.
func extended(t term, ttl time.Duration, sent, answered instant) term {
	x, ok := t.bounded(ttl, sent)
	if !ok {
		panic("there is nothing to ask for")
	}
	return t.asked(x, sent).landed(x, false, answered).renewed(x, sent, answered, pace)
}

// begun says what a grant or a hand-over becomes.
func begun(t term, ok bool) string {
	if !ok {
		return "late"
	}
	return show(t)
}

// TestTerm is the table of the lease's arithmetic. A TTL of 30 s is trusted for
// 29.698 s, a place of 5 s for 4.948 s.
func TestTerm(t *testing.T) {
	type opts = AcquireOptions
	for why, c := range map[string]struct{ got, want string }{
		// A grant.
		"a deadline counts from before the request; the expiry may count from the answer": {
			begun(blank(opts{}).granted(at(0), at(2*sec), pace)),
			"until 29.698s, look at 5s, stored until 32s"},
		"what ends at this instant is over": {
			begun(blank(opts{}).granted(at(0), at(29698*ms), pace)),
			"late"},
		"what is left is of use, however little": {
			begun(blank(opts{}).granted(at(0), at(29698*ms-1), pace)),
			"until 29.698s, look at 5s, stored until 59.697999999s"},
		"while the answer was under way the machine slept, and timers did not count that": {
			begun(blank(opts{}).granted(at(0), suspended(sec, 10*sec), pace)),
			"until 19.698s, look at -302ms, stored until 31s"},
		"the machine slept for as long as the lease lasts": {
			begun(blank(opts{}).granted(at(0), suspended(sec, 28698*ms), pace)),
			"late"},
		"with many leases the pace is slow, and a third of the TTL decides": {
			begun(blank(opts{}).granted(at(0), at(0), time.Hour)),
			"until 29.698s, look at 9.698s, stored until 30s"},
		"nobody renews what the caller extends, so the next event is the deadline": {
			show(held(opts{KeepAlive: KeepAliveOff})),
			"until 29.698s, look at 29.698s, stored until 30s"},
		"the least TTL leaves time for several renewals": {
			show(held(opts{TTL: MinTTL})),
			"until 7.9ms, look at 1.233334ms, stored until 10ms"},
		"the store keeps the lease for the lock delay beyond its TTL": {
			show(held(opts{LockDelay: 10 * sec})),
			"until 29.698s, look at 5s, stored until 40s"},
		"MaxHold is as long as the TTL: there is nothing to renew": {
			show(held(opts{MaxHold: 30 * sec})),
			"until 29.698s, look at 29.698s, stored until 30s, capped"},
		"MaxHold is longer than the TTL: the cap comes with a renewal": {
			show(held(opts{MaxHold: 30*sec + ms})),
			"until 29.698s, look at 5s, stored until 30s"},

		// A crowd.
		"very many are due: this one can wait": {
			show(held(opts{}).stoodBack(at(5*sec), 0.5, pace)),
			"until 29.698s, look at 5.250000001s, stored until 30s"},
		"what is not due does not move": {
			show(held(opts{}).stoodBack(at(4*sec), 0.5, pace)),
			"until 29.698s, look at 5s, stored until 30s"},
		"what is to be asked at once is asked in any crowd": {
			show(held(opts{}).hurried(at(2*sec).mono).stoodBack(at(2*sec), 0.5, pace)),
			"until 29.698s, look at 2s, stored until 30s"},
		"half of the TTL is over: there is no time to wait": {
			show(held(opts{}).stoodBack(at(15*sec), 0.5, pace)),
			"until 29.698s, look at 5s, stored until 30s"},

		// A hand-over.
		"what was handed over lasts as long as the place, and asks soon for its TTL": {
			show(placed(opts{})),
			"until 4.948s, look at 1.1s, stored until 31s, provisional"},
		"the place is over at this instant": {
			begun(blank(opts{}).handedOver(at(0), at(4948*ms), 5*sec, pace)),
			"late"},
		"half of the place is used up: the rest must not wait": {
			begun(blank(opts{}).handedOver(at(0), at(2400*ms), 5*sec, pace)),
			"until 4.948s, look at 2.448s, stored until 32.4s, provisional"},
		"the place lasts as long as the TTL: nothing is to be confirmed": {
			begun(blank(opts{TTL: 300 * ms}).handedOver(at(0), at(198*ms), 500*ms, pace)),
			"until 493ms, look at 293ms, stored until 498ms"},
		"the place lasts longer than the TTL: the holder trusts what it asked for": {
			begun(blank(opts{TTL: 300 * ms}).handedOver(at(0), at(100*ms), 500*ms, pace)),
			"until 395ms, look at 195ms, stored until 400ms"},
		"the place ends a moment before the TTL would": {
			begun(blank(opts{TTL: 300 * ms}).handedOver(at(0), at(198*ms+1), 500*ms, pace)),
			"until 493ms, look at 298.000001ms, stored until 498.000001ms, provisional"},
		"the machine slept in the queue": {
			begun(blank(opts{}).handedOver(at(0), suspended(sec, 2*sec), 5*sec, pace)),
			"until 2.948s, look at 448ms, stored until 31s, provisional"},
		"the machine slept in the queue, so that less is left of the place than of a short TTL": {
			begun(blank(opts{TTL: 300 * ms}).handedOver(at(0), suspended(100*ms, 150*ms), 500*ms, pace)),
			"until 343ms, look at 193ms, stored until 400ms, provisional"},
		"whoever extends by hand is given the whole TTL all the same": {
			show(placed(opts{KeepAlive: KeepAliveOff})),
			"until 4.948s, look at 1.1s, stored until 31s, provisional"},
		"MaxHold is as long as the TTL, but the lease does not have that yet": {
			show(placed(opts{MaxHold: 30 * sec})),
			"until 4.948s, look at 1.1s, stored until 31s, provisional"},

		// An answer to an extension.
		"a renewal counts from before it was sent, and the expiry from its answer": {
			show(extended(held(opts{}), 30*sec, at(5*sec), at(7*sec))),
			"until 34.698s, look at 10s, stored until 37s"},
		"an answer that was overtaken by a later one moves no deadline; it may come from a store that was as slow": {
			show(extended(extended(held(opts{}), 30*sec, at(5*sec), at(7*sec)), 30*sec, at(4*sec), at(8*sec))),
			"until 34.698s, look at 10s, stored until 38s"},
		"a shorter extension never shortens": {
			show(extended(held(opts{}), 10*sec, at(5*sec), at(5*sec))),
			"until 29.698s, look at 9.698s, stored until 30s"},
		"the machine slept while the answer was under way": {
			show(extended(held(opts{}), 30*sec, at(5*sec), suspended(7*sec, 10*sec))),
			"until 24.698s, look at 4.698s, stored until 37s"},
		"the machine slept before the request: the old deadline moves, the new one counts": {
			show(extended(held(opts{}), 10*sec, suspended(5*sec, 15*sec), suspended(5*sec, 15*sec))),
			"until 14.898s, look at -5.102s, stored until 30s"},
		"a confirmation brings the whole TTL": {
			show(extended(placed(opts{}), 30*sec, at(1100*ms), at(1200*ms))),
			"until 30.798s, look at 6.1s, stored until 31.2s"},
		"a shorter extension confirms nothing": {
			show(extended(placed(opts{}), 10*sec, at(1100*ms), at(1200*ms))),
			"until 10.998s, look at 6.1s, stored until 31s, provisional"},
		"all that MaxHold leaves is as good as the whole TTL": {
			show(extended(placed(opts{MaxHold: 30 * sec}), 30*sec, at(1100*ms), at(1200*ms))),
			"until 30.699s, look at 30.699s, stored until 31.1s, capped"},
		"MaxHold cuts the last renewal short": {
			show(extended(held(opts{MaxHold: 40 * sec}), 30*sec, at(20*sec), at(20*sec))),
			"until 39.798s, look at 39.798s, stored until 40s, capped"},
		"an answer that was not cut does not take the cap away": {
			show(extended(extended(held(opts{MaxHold: 40 * sec}), 30*sec, at(20*sec), at(20*sec)), 10*sec, at(20*sec), at(20*sec))),
			"until 39.798s, look at 39.798s, stored until 40s, capped"},
		"a pause between the cut and the sending must not lead beyond MaxHold": {
			func() string {
				held := held(opts{MaxHold: 40 * sec})
				x, _ := held.bounded(30*sec, at(20*sec))
				return show(held.renewed(x, at(21*sec), at(21*sec), pace))
			}(),
			"until 40s, look at 40s, stored until 30s, capped"},
		"MaxHold counts while the machine sleeps": {
			show(extended(held(opts{MaxHold: 40 * sec}), 30*sec, suspended(5*sec, 15*sec), suspended(5*sec, 15*sec))),
			"until 24.798s, look at 24.798s, stored until 30s, capped"},

		// What the keep-alive does.
		"while no answer comes, another renewal follows after a sixth of the TTL": {
			func() string { t, _, _ := held(opts{}).renewing(at(9 * sec)); return show(t) }(),
			"until 29.698s, look at 14s, stored until 30s"},
		"no other renewal is to come before the deadline, so that is the next event": {
			func() string { t, _, _ := held(opts{}).renewing(at(28 * sec)); return show(t) }(),
			"until 29.698s, look at 29.698s, stored until 30s"},
		"a confirmation is repeated by the time that the place leaves": {
			func() string { t, _, _ := placed(opts{}).renewing(at(2 * sec)); return show(t) }(),
			"until 4.948s, look at 2.833333333s, stored until 31s, provisional"},
		"without progress nothing is renewed": {
			func() string { t, _, _ := held(opts{Progress: 5 * sec}).renewing(at(5 * sec)); return show(t) }(),
			"until 29.698s, look at 29.698s, stored until 30s, stalled"},
		"MaxHold leaves less than the least TTL": {
			func() string { t, _, _ := held(opts{MaxHold: 31 * sec}).renewing(at(31*sec - 9*ms)); return show(t) }(),
			"until 29.698s, look at 29.698s, stored until 30s, capped"},
		"a renewal that failed is repeated after a twentieth of the TTL": {
			func() string {
				t, _, _ := held(opts{}).renewing(at(9 * sec))
				return show(t.failed(errNoReply, at(9*sec), pace))
			}(),
			"until 29.698s, look at 10.5s, stored until 30s"},
		"of a long TTL a twentieth is too long to leave a failure": {
			func() string {
				t, _, _ := held(opts{TTL: time.Hour}).renewing(at(9 * sec))
				return show(t.failed(errNoReply, at(9*sec), pace))
			}(),
			"until 59m23.998s, look at 14s, stored until 1h0m0s"},
		"a failure delays no renewal that is due sooner": {
			show(held(opts{}).failed(errNoReply, at(4*sec), pace)),
			"until 29.698s, look at 5s, stored until 30s"},
		"time to look": {
			show(held(opts{}).hurried(at(sec).mono)),
			"until 29.698s, look at 1s, stored until 30s"},

		// A suspension.
		"the deadline comes sooner on the clock of the timers, and the lease is asked for": {
			show(held(opts{}).woken(suspended(sec, 10*sec))),
			"until 19.698s, look at 1s, stored until 30s"},
		"clocks that are read one after the other differ a little": {
			show(held(opts{}).woken(suspended(sec, 10*ms-1))),
			"until 29.698s, look at 5s, stored until 30s"},
		"a renewal that is due already is not put off": {
			show(held(opts{}).hurried(at(0).mono).woken(suspended(sec, 10*sec))),
			"until 19.698s, look at 0s, stored until 30s"},
		"a system without a boot-time clock": {
			show(held(opts{}).woken(instant{at(sec).mono, 0})),
			"until 29.698s, look at 5s, stored until 30s"},

		// What the caller does.
		"progress after a stall renews at once": {
			func() string {
				t, _, _ := held(opts{Progress: 5 * sec}).renewing(at(5 * sec))
				t, _ = t.progressed(at(6 * sec).mono)
				return show(t)
			}(),
			"until 29.698s, look at 6s, stored until 30s"},
		"progress in good time changes nothing": {
			func() string { t, _ := held(opts{Progress: 5 * sec}).progressed(at(4 * sec).mono); return show(t) }(),
			"until 29.698s, look at 5s, stored until 30s"},
		"what AcquireAll kept alive is left to its caller": {
			show(held(opts{}).keptAlive(&opts{KeepAlive: KeepAliveOff}, at(sec).mono)),
			"until 29.698s, look at 29.698s, stored until 30s"},
		"progress counts from when the caller has the lease": {
			func() string {
				t, _, ok := held(opts{}).keptAlive(&opts{Progress: 5 * sec}, at(3*sec).mono).renewing(at(7 * sec))
				return fmt.Sprint(ok, " ", show(t))
			}(),
			"true until 29.698s, look at 12s, stored until 30s"},

		// How long the store may keep it.
		"a request that is sent may be carried out": {
			show(held(opts{LockDelay: 10 * sec}).asked(extension{60 * sec, 70 * sec, false}, at(sec))),
			"until 29.698s, look at 5s, stored until 1m11s"},
		"a request without an answer may have been carried out as late as now": {
			show(held(opts{}).landed(x(30*sec), false, at(20*sec))),
			"until 29.698s, look at 5s, stored until 50s"},
		"a request that was refused has done nothing": {
			show(held(opts{}).landed(x(30*sec), true, at(20*sec))),
			"until 29.698s, look at 5s, stored until 30s"},
		"a short request does not make the store forget a long one": {
			show(held(opts{}).asked(x(10*sec), at(sec))),
			"until 29.698s, look at 5s, stored until 30s"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", why, c.got, c.want)
		}
	}
}

// computes finds arithmetic of deadlines. Picking the first or the last of several
// is none.
var computes = regexp.MustCompile(`\.(asOf|reached|until|expiresBy)\(|\b(trusted|ttlFor)\(` +
	`|(deadline|expiry|renewAt|[els]\.Deadline\(\))(\.mono)?\.(Add|Sub|After|Before)\(` +
	`|\.(Sub|After|Before)\([a-z.]*(deadline|expiry|renewAt|[els]\.Deadline)|time\.(Until|Since)\([a-z.]*(deadline|expiry|[els]\.Deadline)`)

// TestOnlyTheTermComputesDeadlines: whoever reads lease_term.go has read all of
// the arithmetic, but for the two clocks' own.
func TestOnlyTheTermComputesDeadlines(t *testing.T) {
	for _, line := range []string{
		"time.Until(l.Deadline())", "time.Until(l.term.deadline.mono)", "now.Sub(l.term.expiry)", "l.Deadline().Add(d)",
		"now.mono.Before(t.deadline.mono)", "lease.Deadline().After(last)", "now.until(l.term.deadline)", "sent.add(trusted(ttl))",
	} {
		if !computes.MatchString(line) {
			t.Errorf("%s is not found", line)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch lines := computes.FindAllString(string(text), -1); {
		case strings.HasSuffix(file, "_test.go"):
		case file == "clock.go", file == "lease_term.go":
			found += len(lines)
		case len(lines) > 0:
			t.Errorf("%s computes deadlines: %q", file, lines)
		}
	}
	if found < 20 {
		t.Errorf("%d computations in clock.go and lease_term.go, want at least 20: are they read?", found)
	}
}
