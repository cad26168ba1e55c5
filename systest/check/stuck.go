package check

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/systest/model/lease"
)

// A Sight is an observation of the store over a connection without faults: at or after the given
// time, the lease held the name.
type Sight struct {
	Name    string
	LeaseID string
	At      int64
}

// A Closing is an observation of a name that is closed by a lease without a holder.
type Closing struct {
	Sight
	For time.Duration // since the lease's end
}

// Closed returns the last observation of each lease that was seen after its end, the longest time
// first. A lease is stuck if its holder knows that it has ended, or if its end in the store has
// passed. It is abandoned if its caller stopped without a lease and has not been able to cancel
// it yet.
//
// The end is the return of a release or cancel with a reply. Without one it is the latest time at
// which the store may end the lease by itself: its TTL after the return of the last request to
// take or extend it. A request without a reply may still be under way for linger, and then wait
// for its turn. For an abandoned lease the end is the time at which the caller stopped.
//
// strangers counts observations of leases that no client knows.
func (h *History) Closed(sights []Sight, linger time.Duration) (stuck, abandoned []Closing, strangers int) {
	ends := leaseEnds(h.Ops(), int64(linger))
	lastStuck, lastAbandoned := map[string]Closing{}, map[string]Closing{}
	for _, s := range sights {
		end, known := ends[s.LeaseID]
		switch {
		case !known:
			strangers++
		case s.At > end.over:
			lastStuck[s.LeaseID] = Closing{s, time.Duration(s.At - end.over)}
		case end.gaveUp != 0 && s.At > end.gaveUp:
			lastAbandoned[s.LeaseID] = Closing{s, time.Duration(s.At - end.gaveUp)}
		}
	}
	return longestFirst(lastStuck), longestFirst(lastAbandoned), strangers
}

func longestFirst(last map[string]Closing) []Closing {
	return slices.SortedFunc(maps.Values(last), func(a, b Closing) int { return cmp.Compare(b.For, a.For) })
}

// A leaseEnd is when a lease has ended, and why.
type leaseEnd struct {
	over   int64 // the latest end, as its holder knows
	gaveUp int64 // when a caller without the lease ended its requests; 0 if it got the lease
	told   bool
	turn   uint64 // token of the last turn in its cohort: requests of earlier turns end nothing
}

func leaseEnds(ops []Op, linger int64) map[string]leaseEnd {
	slices.SortFunc(ops, func(a, b Op) int { return cmp.Compare(a.Return, b.Return) })
	ends := map[string]leaseEnd{}
	for _, o := range ops {
		end := ends[o.LeaseID]
		if o.LeaseID == "" || o.Kind == lease.Inspect || end.told && o.Kind != lease.Acquire || o.Kind != lease.Acquire && o.Token != 0 && o.Token < end.turn {
			continue
		}
		switch answered := o.Outcome == lease.Done || o.Outcome == lease.Lost; o.Kind {
		case lease.Acquire:
			if end.told && (o.Outcome == lease.Held || o.Outcome == lease.Cancelled || o.Outcome == lease.Failed) {
				break
			}
			end.told, end.turn = false, max(end.turn, o.Token) // it is requested again
			end.gaveUp, end.over = 0, o.Return+int64(o.TTL)
			if o.Outcome == lease.Unknown { // the request may have a place, and get the lock at its end
				end.gaveUp, end.over = o.Return, o.Return+linger+2*int64(o.TTL)
			}
		case lease.Extend:
			end.over = max(end.over, o.Return+int64(o.TTL))
		default:
			if end.told = answered; answered {
				end.over = o.Return
			}
		}
		ends[o.LeaseID] = end
	}
	return ends
}
