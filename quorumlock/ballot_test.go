package quorumlock

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The members' answers in these tests. clock is the members' clock.
const clock = 1_000_000_000_000_000

func voted(v driver.Vote) answer {
	return answer{state: answered, reply: driver.ProposeReply{Vote: v, Clock: clock, Counter: clock - 100}}
}

func has(token uint64) answer {
	a := voted(driver.VoteOwn)
	a.reply.Token, a.reply.Counter = token, token
	return a
}

func heldBy(id lockinfo.LeaseID, ends time.Duration) answer {
	a := voted(driver.VoteHeld)
	a.reply.Rival, a.reply.Blocker = id, driver.Blocker{ExpiresIn: ends, Holder: lockinfo.Holder{Host: string(id)}}
	return a
}

func at(counter, clock uint64) answer {
	a := voted(driver.VoteRefused)
	a.reply.Counter, a.reply.Clock = counter, clock
	return a
}

var (
	yes   = voted(driver.VoteAccepted)
	low   = voted(driver.VoteRefused)
	quar  = voted(driver.VoteQuarantined)
	stop  = voted(driver.VoteCancelled)
	byX   = heldBy("x", time.Second)
	byY   = heldBy("y", 2*time.Second)
	fails = answer{state: failed, err: errors.New("no answer")}
	none  = answer{}
)

func TestVerdict(t *testing.T) {
	tests := []struct {
		name    string
		answers []answer
		want    verdict
		firm    bool
	}{
		{"nothing yet", []answer{none, none, none}, undecided, false},
		{"one", []answer{yes, none, none}, undecided, false},
		{"a majority", []answer{yes, none, yes}, won, true},
		{"of five, two", []answer{yes, yes, none, none, none}, undecided, false},
		{"of five, three", []answer{yes, yes, none, none, yes}, won, true},
		{"a cancel outweighs all", []answer{yes, yes, stop}, cancelled, true},
		{"one holder", []answer{byX, none, byX}, inUse, true},
		{"one holder, and a member that is free", []answer{yes, byX, byX}, inUse, true},
		{"split, and we are first", []answer{yes, byX, byY}, press, true},
		{"split, and we are not first", []answer{byX, yes, byY}, inUse, true},
		{"split, and we have none", []answer{byX, byY, fails}, inUse, true},
		{"split, and the first failed", []answer{fails, yes, byX}, press, true},
		{"split between two, one to come", []answer{yes, byX, none}, press, false},
		{"split against us, one to come", []answer{byX, yes, none}, giveWay, false},
		{"in use here, one failed, one to come", []answer{byX, fails, none}, undecided, false},
		{"five, in use by two, no majority to come", []answer{byX, byY, fails, yes, none}, giveWay, false},
		{"five, in use by two, three to come", []answer{none, none, none, byX, byX}, undecided, false},
		{"five, in use by two, two to come", []answer{byX, byX, yes, none, none}, giveWay, false},
		{"five, split, and we are first", []answer{yes, byX, byY, yes, byX}, press, true},
		{"five, one to come that could be ours", []answer{yes, yes, byX, byX, none}, press, false},
		{"all refuse", []answer{low, low, low}, raise, true},
		{"enough refuse", []answer{low, low, none}, raise, true},
		{"one refuses, one to come", []answer{low, yes, none}, raise, false},
		{"one refuses, one failed", []answer{low, yes, fails}, raise, true},
		{"two failed", []answer{fails, none, fails}, unreachable, true},
		{"two failed, one has it", []answer{fails, yes, fails}, unreachable, true},
		{"two in quarantine", []answer{quar, yes, quar}, unreachable, true},
		{"one in quarantine, one held", []answer{quar, byX, yes}, inUse, true},
		{"one in quarantine", []answer{quar, yes, yes}, won, true},
		{"an earlier lease", []answer{has(10), none, has(10)}, ours, true},
		{"an earlier lease, one to come", []answer{has(10), yes, none}, undecided, false},
		{"perhaps an earlier lease", []answer{has(10), yes, fails}, ambiguous, true},
		{"no earlier lease", []answer{has(10), low, yes}, raise, true},
		{"two earlier tokens", []answer{has(10), has(12), low}, spent, true},
		{"half an earlier lease, one to come", []answer{has(10), none, low}, undecided, false},
		{"half an earlier lease, one held", []answer{has(10), byX, low}, spent, true},
		{"half an earlier lease, two held", []answer{has(10), byX, byY}, inUse, true},
		{"half of five, one to come", []answer{has(10), has(12), low, low, none}, spent, false},
		{"two earlier tokens, one failed", []answer{has(10), has(12), fails}, ambiguous, true},
		{"clocks apart, one to come", []answer{at(0, clock), at(0, 2*clock), none}, undecided, false},
		{"clocks apart, one held", []answer{at(0, clock), at(0, 2*clock), byX}, inUse, true},
		{"clocks apart, one failed", []answer{at(0, clock), at(0, 2*clock), fails}, raise, true},
	}
	for _, test := range tests {
		b := ballot{quorum: len(test.answers)/2 + 1, lead: time.Minute, answers: test.answers}
		if v, firm := b.verdict(); v != test.want || firm != test.firm {
			t.Errorf("%s: verdict %d, firm %t; want %d, %t", test.name, v, firm, test.want, test.firm)
		}
	}
}

// TestVerdictEnds checks that every ballot without pending answers ends in a decision.
func TestVerdictEnds(t *testing.T) {
	kinds := []answer{yes, low, quar, byX, byY, fails, has(10), has(12), at(0, 2*clock)}
	var all func(answers []answer)
	all = func(answers []answer) {
		if len(answers) == 5 {
			b := ballot{quorum: 3, answers: answers}
			if v, firm := b.verdict(); v == undecided || !firm {
				t.Errorf("%+v: verdict %d, firm %t", answers, v, firm)
			}
			return
		}
		for _, a := range kinds {
			all(append(answers[:len(answers):len(answers)], a))
		}
	}
	all(nil)
}

func TestNextToken(t *testing.T) {
	const hour, minute = uint64(time.Hour / time.Microsecond), uint64(time.Minute / time.Microsecond)
	const maxTTL = 5 * time.Minute
	tests := []struct {
		name    string
		answers []answer
		min     uint64
		want    uint64 // 0: none
	}{
		{"above the counters and the clocks", []answer{at(clock+7, clock), at(clock-5, clock+2), at(0, clock)}, 0, clock + 8},
		{"above the clocks", []answer{at(0, clock), at(0, clock+3), fails}, 0, clock + 4},
		{"above MinToken", []answer{at(0, clock), at(0, clock), at(0, clock)}, clock + hour, clock + hour + 2},
		{"MinToken too far ahead", []answer{at(0, clock), at(0, clock), at(0, clock)}, clock + hour + 1, 0},
		{"a clock far ahead is left behind", []answer{at(0, clock), at(0, clock+50*hour), at(0, clock)}, 0, clock},
		{"a clock two minutes ahead is left behind", []answer{at(0, clock), at(0, clock+2*minute), at(0, clock)}, 0, clock},
		{"a clock an hour ahead is left behind", []answer{at(0, clock), at(0, clock+hour), at(0, clock)}, 0, clock},
		{"a counter a little ahead is followed", []answer{at(0, clock), at(clock+5000, clock), at(0, clock)}, 0, clock + 5002},
		{"a clock far behind is left behind", []answer{at(0, clock), at(0, clock-50*hour), at(0, clock)}, 0, clock},
		{"a counter far ahead is left behind", []answer{at(0, clock), at(clock+50*hour, clock), at(0, clock)}, 0, clock},
		{"a counter ahead is followed", []answer{at(0, clock), at(clock+hour, clock), fails}, 0, clock + hour + 2},
		{"clocks as far apart as they may be", []answer{at(0, clock), at(0, clock+2*minute), fails}, 0, clock + 2*minute},
		{"clocks a little too far apart", []answer{at(0, clock), at(0, clock+3*minute), fails}, 0, 0},
		{"a counter that follows its clock lifts nothing", []answer{at(0, clock), at(clock+3*minute, clock+3*minute), fails}, 0, 0},
		{"a counter that MinToken lifted is followed no further", []answer{at(clock+3*minute, clock), at(0, clock+3*minute+2), fails}, 0, clock + 3*minute + 2},
		{"clocks apart", []answer{at(0, clock), at(0, clock+50*hour), fails}, 0, 0},
		{"held members have no say", []answer{at(0, clock), heldBy("x", 0), at(0, clock)}, 0, clock},
		{"at the end of time", []answer{at(driver.MaxToken, clock), at(driver.MaxToken, clock), fails}, 0, 0},
	}
	for _, test := range tests {
		b := ballot{quorum: 2, minToken: test.min, lead: maxTTL / 2, answers: test.answers}
		p, ok := b.next()
		if ok != (test.want != 0) || ok && p.token != test.want {
			t.Errorf("%s: token %d, %t; want %d", test.name, p.token, ok, test.want)
		}
	}
}

func TestBlocker(t *testing.T) {
	never := heldBy("foreign", lockinfo.Never)
	tests := []struct {
		name    string
		answers []answer
		want    string // the holder by whose end a majority is free
	}{
		{"one holder", []answer{byX, byX, byX}, "x"},
		{"two holders: the second to end", []answer{byX, byY, fails}, "y"},
		{"two holders and a free member: the first to end", []answer{byY, byX, yes}, "x"},
		{"no expiry", []answer{byX, never, never}, "foreign"},
		{"never is last", []answer{never, byX, byX}, "x"},
		{"nobody", []answer{low, low, fails}, ""},
	}
	for _, test := range tests {
		b := ballot{quorum: 2, answers: test.answers}
		if got := b.blocker().Holder.Host; got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
