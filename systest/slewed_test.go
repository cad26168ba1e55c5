//go:build linux

package systest

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/systest/fault"
	"github.com/holdfast-locks/holdfast/systest/report"
	"github.com/holdfast-locks/holdfast/systest/soak"
)

// slewed are the rates of the store's clock relative to the holder's: either clock fast or slow by
// chrony's default maximum, and correct clocks.
var slewed = map[string]float64{
	"store ×1.083": 1.083, "store ×0.917": 0.917,
	"holder ×1.083": 1 / 1.083, "holder ×0.917": 1 / 0.917,
	"right": 1,
}

// TestSlewedStore checks that while a clock is slewed, a holder that is cut off knows of its loss
// before Redis grants the lock to a rival. INVARIANT I3.
func TestSlewedStore(t *testing.T) {
	clocks := fault.NewClocks(t)
	ttls := []time.Duration{3 * time.Second}
	if soak.Long() {
		ttls = append(ttls, 10*time.Second, 30*time.Second)
	}
	c := slewing{nearest: time.Hour}
	var all sync.WaitGroup
	for which, rate := range slewed {
		s := newStore(t)
		clocks.Slew(s.server.PID(), rate)
		c.measure(t, s, which, rate)
		for _, ttl := range ttls {
			for _, keepAlive := range []holdfast.KeepAlive{holdfast.KeepAliveOn, holdfast.KeepAliveOff} {
				l := s.link(t)
				holder, rival := l.client(t, nil), newClient(t, s.engine, nil)
				all.Go(func() {
					for round := range soak.Count(1, 10) {
						name := fmt.Sprintf("slewed/%s/%d/%d", ttl, keepAlive, round)
						c.check(t, l, holder, rival, name, &holdfast.AcquireOptions{TTL: ttl, KeepAlive: keepAlive})
					}
				})
			}
		}
	}
	all.Wait()
	report.Row(t, "store's or holder's clock slewed by 8.3 %, either way; TTL 3, 10, 30 s; holder cut off", "no lease valid when a rival is granted",
		"%d leases: %d valid; the nearest deadline came %s before the rival's grant",
		c.leases, c.valid, c.nearest.Round(time.Millisecond))
	if c.valid > 0 {
		t.Errorf("of %d leases %d were valid when the rival was granted", c.leases, c.valid)
	}
}

// TestDoctorSeesSlewing checks that the doctor reports a slewed clock, and does not report a
// correct clock.
func TestDoctorSeesSlewing(t *testing.T) {
	clocks := fault.NewClocks(t)
	for which, rate := range slewed {
		s := newStore(t)
		clocks.Slew(s.server.PID(), rate)
		var rated driver.Finding
		// A slow reading of the clock is too uncertain; one of several is good enough.
		eventually(t, "a finding of the rate of "+which, func() bool {
			d, err := s.engine.Diagnose(t.Context(), driver.DiagnoseRequest{TTL: 30 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range d.Findings {
				if f.Key == "clock_rate" {
					rated = f
				}
			}
			return rated.Measures["uncertainty"] < rated.Measures["passed"]/50
		})
		want := driver.Warn
		if rate == 1 {
			want = driver.OK
		}
		if rated.Level != want {
			t.Errorf("%s: %s: %s, want %s", which, rated.Level, rated.Text, want)
		}
	}
}

// A slewing counts leases under slewed clocks and how they ended.
type slewing struct {
	mu      sync.Mutex // guards the rest
	leases  int
	valid   int
	nearest time.Duration // least gap from a deadline to the rival's grant
}

// check cuts a holder off and waits until a rival is granted its lock.
func (c *slewing) check(t *testing.T, l *link, holder, rival *holdfast.Client, name string, opts *holdfast.AcquireOptions) {
	lease, err := holder.Acquire(t.Context(), name, opts)
	if err != nil {
		t.Error(err)
		return
	}
	l.Cut()
	defer l.Heal()
	next, err := rival.Acquire(t.Context(), name, &holdfast.AcquireOptions{TTL: opts.TTL})
	valid, late := lease.Valid(), time.Since(lease.Deadline())
	if err != nil {
		t.Error(err)
		return
	}
	c.mu.Lock()
	c.leases++
	if valid {
		c.valid++
	}
	c.nearest = min(c.nearest, late)
	c.mu.Unlock()
	_ = next.Release(t.Context()) // the next round uses another name
}

// measure fails t if the store's clock does not run at the rate, because the test would then check
// nothing.
func (c *slewing) measure(t *testing.T, s *store, which string, rate float64) {
	t.Helper()
	began, before := time.Now(), s.clock(t)
	eventually(t, fmt.Sprintf("%s: the store's clock runs at %.3f", which, rate), func() bool {
		time.Sleep(100 * time.Millisecond)
		shown := s.clock(t).Sub(before)
		return math.Abs(float64(shown)/float64(time.Since(began))-rate) < 0.02
	})
}
