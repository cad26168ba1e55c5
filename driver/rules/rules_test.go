package rules_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/rules"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// needs are the exclusive and the shared mode, and all modes of semaphores with up to three
// permits.
var needs = []lockinfo.Mode{
	lockinfo.Exclusive,
	lockinfo.Shared,
	lockinfo.Permits(1, 1),
	lockinfo.Permits(1, 2),
	lockinfo.Permits(2, 2),
	lockinfo.Permits(1, 3),
	lockinfo.Permits(2, 3),
	lockinfo.Permits(3, 3),
}

// compatible is INVARIANT I1 as ARCHITECTURE.md and lockinfo.Mode state it. An exclusive lease is
// the only lease, and shared leases are held with shared leases only. Leases of a semaphore have
// one limit, which their permits do not exceed.
func compatible(leases []lockinfo.Mode) bool {
	permits := 0
	for _, l := range leases {
		switch {
		case l == lockinfo.Exclusive && len(leases) > 1,
			l.Kind() != leases[0].Kind(), l.Limit() != leases[0].Limit():
			return false
		}
		permits += l.Permits()
	}
	return len(leases) == 0 || permits <= leases[0].Limit()
}

// kind is INVARIANT I12: it returns a text for the kind of a mode. Kinds must not be mixed.
func kind(n lockinfo.Mode) string {
	if n.Permits() > 0 {
		return fmt.Sprint("semaphore of ", n.Limit())
	}
	return "lock"
}

// lists calls do with every list of up to three elements of all.
func lists[T any](all []T, do func([]T)) {
	var more func(list []T)
	more = func(list []T) {
		do(list)
		if len(list) == 3 {
			return
		}
		for _, x := range all {
			more(append(slices.Clip(list), x))
		}
	}
	more(nil)
}

// A spell is a lease or a place that expires after left.
type spell struct {
	mode lockinfo.Mode
	left time.Duration
	once bool // only of a place
}

// live returns the modes of the spells that have not expired.
func live(spells []spell) (needs []lockinfo.Mode) {
	for _, s := range spells {
		if s.left > 0 {
			needs = append(needs, s.mode)
		}
	}
	return needs
}

func view(leases, places []spell) (v rules.View) {
	for _, l := range leases {
		v.AddLease(l.mode, l.left)
	}
	for _, p := range places {
		v.AddPlace(p.mode, p.once, p.left)
	}
	return v
}

// spells returns a spell of each mode for each remaining time.
func spells(lefts ...time.Duration) (all []spell) {
	for _, n := range needs {
		for _, left := range lefts {
			all = append(all, spell{mode: n, left: left})
		}
	}
	return all
}

// TestFits checks INVARIANT I1 for all leases and all requests: a request fits if and only if it is
// compatible with every live lease.
func TestFits(t *testing.T) {
	tried := 0
	lists(spells(-1, 0, 1, 2), func(leases []spell) {
		there := live(leases)
		if !compatible(there) {
			return // cannot happen
		}
		v := view(leases, nil)
		for _, n := range needs {
			tried++
			if got, want := v.Fits(n), compatible(append(slices.Clip(there), n)); got != want {
				t.Fatalf("leases %v: a request for %v fits: %t, want %t", leases, n, got, want)
			}
		}
	})
	if least := 20_000; tried < least {
		t.Errorf("%d requests were tried, want %d at least", tried, least)
	}
}

// TestBlocker checks that the blocker is the live lease that expires first.
func TestBlocker(t *testing.T) {
	lists(spells(-1, 0, 1, 2, 3), func(leases []spell) {
		if !compatible(live(leases)) {
			return
		}
		var v rules.View
		first, soonest := -1, -1
		for i, l := range leases {
			if v.AddLease(l.mode, l.left) {
				first = i
			}
			if l.left > 0 && (soonest < 0 || l.left < leases[soonest].left) {
				soonest = i
			}
		}
		want := driver.Blocker{Holder: lockinfo.Holder{PID: 7}, Since: time.Hour, Released: true, Place: 5, Queue: 6}
		if soonest >= 0 {
			want.ExpiresIn = leases[soonest].left
		}
		got := v.Blocker(lockinfo.Holding{
			LeaseID: "secret", Token: 9, Holder: lockinfo.Holder{PID: 7}, Since: time.Hour, ExpiresIn: -1, Released: true,
		}, 5, 6)
		if first != soonest || fmt.Sprint(got) != fmt.Sprint(want) || v.Held != (soonest >= 0) {
			t.Fatalf("leases %v: lease %d is described as %+v (held: %t), want lease %d as %+v", leases, first, got, v.Held, soonest, want)
		}
	})
}

// TestKinds checks INVARIANT I12: a name that has holders or waiters refuses requests of another
// kind, and no other requests.
func TestKinds(t *testing.T) {
	said := map[string]bool{}
	check := func(v rules.View, used []lockinfo.Mode) {
		for _, n := range needs {
			err := v.CheckKind(n)
			switch differs := len(used) > 0 && kind(used[0]) != kind(n); {
			case differs != (err != nil):
				t.Fatalf("in use with %v: a request for %v is answered %v", used, n, err)
			case !differs:
				continue
			case !errors.Is(err, driver.ErrKindMismatch):
				t.Fatalf("in use with %v: a request for %v is answered %v, want ErrKindMismatch", used, n, err)
			case used[0].Limit() > 0 && !strings.Contains(err.Error(), fmt.Sprintf("limit %d now", used[0].Limit())):
				t.Fatalf("in use with %v: %q does not name the limit", used, err)
			}
			said[err.Error()] = true
		}
	}
	lists(spells(0, 1), func(used []spell) {
		there := live(used)
		if compatible(there) {
			check(view(used, nil), there)
		}
		if !slices.ContainsFunc(there, func(n lockinfo.Mode) bool { return kind(n) != kind(there[0]) }) {
			check(view(nil, used), there)
		}
	})
	for _, want := range []string{
		"kind mismatch: the name is a semaphore with limit 2 now: use that limit, or another name",
		"kind mismatch: the name is a lock without slots now: leave the limit out, or use another name",
		"kind mismatch: the semaphore has limit 3 now: use that limit, or wait until the name is unused",
	} {
		if !said[want] {
			t.Errorf("no request was answered %q", want)
		}
	}
}

// TestDue checks INVARIANT I7: the first live place is served if and only if its request is
// compatible with the leases and does not wait for work that is done. Later places are not
// considered.
func TestDue(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		lists(spells(0, 1), func(leases []spell) {
			there := live(leases)
			if len(leases) > 2 || !compatible(there) {
				return
			}
			lists(places(), func(places []spell) {
				v := view(leases, places)
				v.Recorded = recorded
				first := slices.IndexFunc(places, func(p spell) bool { return p.left > 0 })
				if v.Queued != (first >= 0) {
					t.Fatalf("places %v: queued: %t", places, v.Queued)
				}
				done := first >= 0 && recorded && places[first].once
				due := first >= 0 && !done && compatible(append(slices.Clip(there), places[first].mode))
				if v.Due() != due || v.Settled() == (due || done) {
					t.Fatalf("leases %v, places %v, recorded: %t: due: %t, settled: %t; want due: %t, done: %t",
						leases, places, recorded, v.Due(), v.Settled(), due, done)
				}
			})
		})
	}
}

// places returns places that differ in mode, in whether they have expired, and in Once.
func places() (all []spell) {
	for _, n := range []lockinfo.Mode{needs[0], needs[1], needs[3], needs[4]} {
		all = append(all, spell{n, 0, false}, spell{n, 1, false}, spell{n, 1, true})
	}
	return all
}

// TestJudge checks all outcomes of a request, and which of them takes precedence.
func TestJudge(t *testing.T) {
	const clock = uint64(1e15)
	stuck := errors.New("stuck")
	tooFar := clock + uint64(driver.MaxTokenLead.Microseconds()) + 1
	bools := []bool{false, true}
	for bits := range 1 << 9 {
		bit := func(i int) bool { return bools[bits>>i&1] }
		v := rules.View{Cancelled: bit(0), Own: bit(1), Recorded: bit(2)}
		req := driver.AcquireRequest{Once: bit(3), Queue: true, MinToken: clock + 5}
		if bit(4) {
			v.AddLease(needs[0], 1)
		}
		if bit(5) {
			v.AddPlace(needs[0], false, 1)
		}
		if bit(6) {
			v.Stuck = stuck
		}
		if bit(7) {
			req.Mode = lockinfo.Permits(1, 1)
		}
		if bit(8) {
			req.MinToken = tooFar
		}
		var want driver.Outcome
		var fails error
		switch used := v.Held || v.Queued; {
		case v.Cancelled:
			want = driver.Cancelled
		case v.Own:
			want = driver.Granted
		case v.Recorded && req.Once:
			want = driver.Recorded
		case used && req.Mode != lockinfo.Exclusive:
			fails = driver.ErrKindMismatch
		case req.MinToken == tooFar:
			fails = driver.ErrInvalid
		case v.Stuck != nil:
			fails = stuck
		case used:
			want = driver.Held
		default:
			want = driver.Granted
		}
		got, least, err := v.Judge(&req, clock)
		if got != want || !errors.Is(err, fails) || (err == nil) != (fails == nil) {
			t.Fatalf("%+v of %+v: outcome %d, %v; want %d, %v", req, v, got, err, want, fails)
		}
		if granted := got == driver.Granted && !v.Own; granted != (least != 0) || granted && least != clock+6 {
			t.Fatalf("%+v of %+v: least token %d", req, v, least)
		}
	}
}

// TestClockPastLastToken checks INVARIANT I2: a request is refused before anything is recorded if
// the clock has passed the greatest token.
func TestClockPastLastToken(t *testing.T) {
	for clock, want := range map[uint64]driver.Outcome{driver.MaxToken: driver.Granted, driver.MaxToken + 1: driver.Held} {
		var v rules.View
		outcome, least, err := v.Judge(&driver.AcquireRequest{}, clock)
		if outcome != want || errors.Is(err, driver.ErrUnavailable) != (want == driver.Held) {
			t.Errorf("clock %d: outcome %d, least token %d, %v; want outcome %d", clock, outcome, least, err, want)
		}
	}
}

// TestTokens checks INVARIANT I2: a new token is above the reserved range of the last token and
// above the token of the request, and not below the clock. No token is above the greatest.
func TestTokens(t *testing.T) {
	around := []uint64{0, 1, 2, 1000, driver.MaxToken - 2, driver.MaxToken - 1, driver.MaxToken, driver.MaxToken + 1}
	for _, last := range around[:7] {
		for _, clock := range around {
			for _, minToken := range around[:7] {
				token, err := rules.NextToken(last, rules.LeastToken(clock, minToken))
				possible := last+driver.TokenRange <= driver.MaxToken && minToken < driver.MaxToken && clock <= driver.MaxToken
				switch {
				case !possible && !errors.Is(err, driver.ErrUnavailable), possible && err != nil:
					t.Errorf("after %d, at %d, above %d: %v", last, clock, minToken, err)
				case possible && (token < last+driver.TokenRange || token <= minToken || token < clock || token > driver.MaxToken):
					t.Errorf("after %d, at %d, above %d: token %d", last, clock, minToken, token)
				}
			}
		}
	}
}
