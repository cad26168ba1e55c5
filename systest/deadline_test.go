package systest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/faultproxy"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// After every acquire and every renewal the local deadline is compared with the expiry in the
// store, while requests and replies are delayed at random.
const (
	deadlineTTL   = 400 * time.Millisecond
	deadlineDelay = deadlineTTL / 2 // at most, in both directions together
)

// A tally counts comparisons.
type tally struct {
	mu       sync.Mutex // guards the rest
	acquires int
	renewals int
	failed   int           // acquires and renewals whose replies came too late
	late     int           // deadlines later than the expiry
	naive    int           // the same if the lease's clock started after the reply
	closest  time.Duration // least gap from a deadline to the expiry
	blind    int           // comparisons that were too slow to count
}

// blur is how long reading an expiry may take for the comparison to count. Together with the drift
// margin, which is 42 ms at this TTL, it must not hide a violation.
const blur = 3 * time.Millisecond

// compare reads the expiry on a connection without faults. PTTL counts from some instant between
// the two readings of the clock: a deadline after the later end of the resulting range is certainly
// too late.
func (c *tally) compare(t *testing.T, s *store, lease *holdfast.Lease, answered time.Time) {
	before := time.Now()
	left, err := s.do(t, "PTTL", lease.Name()).AsInt64()
	after := time.Now()
	if err != nil || left < 0 {
		if lease.Valid() {
			t.Errorf("%s: the lease is valid until %s from now, the store says PTTL %d, %v", lease.Name(), lease.Remaining(), left, err)
		}
		return
	}
	expiry := time.Duration(left) * time.Millisecond
	earliest, latest := before.Add(expiry), after.Add(expiry+time.Millisecond)
	naive := answered.Add(deadlineTTL - deadlineTTL/10 - 2*time.Millisecond)
	deadline := lease.Deadline()

	c.mu.Lock()
	defer c.mu.Unlock()
	if after.Sub(before) > blur {
		c.blind++
	}
	if deadline.After(latest) {
		c.late++
	}
	if naive.After(latest) {
		c.naive++
	}
	if gap := earliest.Sub(deadline); after.Sub(before) <= blur && gap < c.closest {
		c.closest = gap
	}
}

func (c *tally) count(counter *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*counter++
}

// work acquires and renews leases, operations times in all.
func (c *tally) work(t *testing.T, s *store, client *holdfast.Client, name string, operations int) {
	opts := &holdfast.AcquireOptions{TTL: deadlineTTL, KeepAlive: holdfast.KeepAliveOff}
	for done := 0; done < operations; {
		lease, err := client.TryAcquire(t.Context(), name, opts)
		if err != nil {
			c.count(&c.failed)
			continue
		}
		c.compare(t, s, lease, time.Now())
		c.count(&c.acquires)
		for done++; done < operations; done++ {
			if err := lease.Extend(t.Context(), deadlineTTL); err != nil {
				c.count(&c.failed)
				break
			}
			c.compare(t, s, lease, time.Now())
			c.count(&c.renewals)
			if rand.IntN(4) == 0 {
				break
			}
		}
		_ = lease.Release(context.Background()) // sometimes lost before
	}
}

// TestDeadlineIsNeverLaterThanTheExpiry checks that the deadline is never later than the expiry.
// INVARIANT I3.
func TestDeadlineIsNeverLaterThanTheExpiry(t *testing.T) {
	s := newStore(t)
	const links, perLink = 25, 8
	operations := soak.Count(25, 100)
	c := tally{closest: deadlineTTL}
	var all sync.WaitGroup
	for i := range links {
		l := s.link(t)
		l.OnRequest(func(r faultproxy.Request) faultproxy.Action {
			if o := s.opOf(r); o != acquire && o != extend {
				return faultproxy.Action{}
			}
			delay := rand.N(deadlineDelay)
			there := rand.N(delay + 1)
			return faultproxy.Delay(there, delay-there)
		})
		client := l.client(t, nil)
		for j := range perLink {
			all.Go(func() { c.work(t, s, client, fmt.Sprintf("deadline/%d/%d", i, j), operations) })
		}
	}
	all.Wait()

	total := c.acquires + c.renewals
	report.Row(t, "requests and replies delayed by up to half the TTL", "no local deadline later than the expiry in the store",
		"%d acquires and %d renewals, %d more came too late to be of use; %d deadlines were late, the nearest was %s before the expiry; counted from after the reply %d would have been late",
		c.acquires, c.renewals, c.failed, c.late, c.closest, c.naive)
	t.Logf("%d comparisons were slow", c.blind)
	if total < links*perLink*operations*9/10 {
		t.Errorf("only %d comparisons", total)
	}
	if c.late > 0 {
		t.Errorf("%d of %d deadlines are later than the expiry in the store", c.late, total)
	}
	if c.naive < total/2 {
		t.Errorf("counted from after the reply, only %d of %d would be late: this test proves nothing", c.naive, total)
	}
}
