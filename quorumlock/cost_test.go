package quorumlock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// counts returns the number of requests of a method by member.
func (r *rig) counts(method string) []int {
	var counts []int
	for _, l := range r.links {
		counts = append(counts, l.count(method))
	}
	return counts
}

// TestOneRoundTrip counts requests: each operation takes one round trip.
func TestOneRoundTrip(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		want := func(method string, n int) {
			r.Helper()
			settle(time.Second)
			if got := r.counts(method); !slices.Equal(got, []int{n, n, n}) {
				r.Errorf("%s requests: %v, want %d each", method, got, n)
			}
		}
		for range 3 {
			h := r.take("a")
			want("Propose", 1)
			r.outcome(ask("a"), driver.Held)
			want("Propose", 1)
			if err := r.extend(h); err != nil {
				r.Fatal(err)
			}
			want("Renew", 1)
			r.mustRelease(h)
			want("Withdraw", 1)
			want("Renew", 0)
		}
	})
}

// TestBackToBack checks that a token used a microsecond earlier costs no second round, because the
// engine remembers it.
func TestBackToBack(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		var last uint64
		for range 10 {
			h := r.take("a")
			if h.token <= last {
				r.Errorf("token %d after %d", h.token, last)
			}
			last = h.token
			r.mustRelease(h)
		}
		settle(0)
		if got := r.counts("Propose"); !slices.Equal(got, []int{10, 10, 10}) {
			r.Errorf("proposals for 10 acquires: %v, want 10 each", got)
		}
	})
}

// TestSecondRound checks that a token costs one more round if it is not above the counters, or too
// far from the members' clocks.
func TestSecondRound(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		req := ask("a")
		req.MinToken = uint64(time.Now().Add(30 * time.Minute).UnixMicro())
		lifted := r.grant(req)
		if lifted.token <= req.MinToken {
			r.Errorf("token %d, want more than MinToken %d", lifted.token, req.MinToken)
		}
		r.mustRelease(lifted)
		settle(time.Second)

		other := r.another()
		last := lifted.token
		for _, rounds := range []int{2, 1} {
			h := other.take("a")
			settle(time.Second)
			if got := other.counts("Propose"); !slices.Equal(got, []int{rounds, rounds, rounds}) {
				r.Errorf("proposals: %v, want %d each", got, rounds)
			}
			if h.token <= last {
				r.Errorf("token %d after %d", h.token, last)
			}
			last = h.token
			if got := other.holders(h); !slices.Equal(got, []uint64{h.token, h.token, h.token}) {
				r.Errorf("members have %v, want %d", got, h.token)
			}
			other.mustRelease(h)
			settle(time.Second)
		}
	})
}

// TestWrongClock checks that a client with a wrong clock pays one more round trip, once, and that
// no token follows its clock.
func TestWrongClock(t *testing.T) {
	for _, ahead := range []time.Duration{-24 * time.Hour, -time.Minute, time.Minute, 24 * time.Hour} {
		bubble(t, 3, func(r *rig) {
			r.SetClock(ahead)
			for i, rounds := range []int{2, 1} {
				h := r.take(fmt.Sprint("name ", i))
				off := int64(h.token) - time.Now().UnixMicro()
				settle(time.Second)
				if got := r.counts("Propose"); !slices.Equal(got, []int{rounds, rounds, rounds}) {
					r.Errorf("clock %s ahead: proposals %v, want %d each", ahead, got, rounds)
				}
				if off < -1e6 || off > 1e6 {
					r.Errorf("clock %s ahead: token %d us ahead", ahead, off)
				}
			}
		})
	}
}

// TestOneBadMemberCostsNothing checks that with one dead, silent or slow member each operation
// takes at most 5 ms longer than the slower of the other two.
func TestOneBadMemberCostsNothing(t *testing.T) {
	const fast, slower = 10 * time.Millisecond, 20 * time.Millisecond
	bad := map[string]func(*link){
		"dead":   func(l *link) { l.set(down) },
		"silent": func(l *link) { l.set(silent) },
		"slow":   func(l *link) { l.slow(400 * time.Millisecond) },
	}
	for what, break1 := range bad {
		for at := range 3 {
			t.Run(fmt.Sprintf("member %d is %s", at+1, what), func(t *testing.T) {
				bubble(t, 3, func(r *rig) {
					r.links[(at+1)%3].slow(fast)
					r.links[(at+2)%3].slow(slower)
					break1(r.links[at])
					took := func(op string, f func()) {
						r.Helper()
						start := time.Now()
						f()
						if took := time.Since(start); took > slower+5*time.Millisecond {
							r.Errorf("%s took %s, want %s", op, took, slower)
						}
					}
					var h held
					for range 3 {
						took("Acquire", func() { h = r.take("a") })
						took("Acquire of a held name", func() { r.outcome(ask("a"), driver.Held) })
						took("repeated Acquire", func() { r.grant(h.AcquireRequest) })
						took("Extend", func() {
							if err := r.extend(h); err != nil {
								r.Error(err)
							}
						})
						took("Inspect", func() {
							if lock, err := r.Inspect(r.Context(), "a"); err != nil || len(lock.Holders) != 1 {
								r.Errorf("Inspect: %+v, %v", lock, err)
							}
						})
						took("Release", func() { r.mustRelease(h) })
					}
				})
			})
		}
	}
}
