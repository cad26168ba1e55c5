// Package probe has what the Diagnose methods of several engines share.
package probe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	tryTTL = 10 * time.Second
	limit  = 2 * time.Second // the longest time of one try
	tries  = 5               // the median of them counts
	perTTL = 20              // how many requests must fit into a TTL
)

// ClockStep is how much two clocks may differ.
const ClockStep = 100 * time.Millisecond

// Findings collects the findings of a diagnosis.
type Findings []driver.Finding

// Found adds a finding with a text.
func (f *Findings) Found(level driver.Level, key, format string, args ...any) {
	f.Add(driver.Finding{Level: level, Key: key, Text: fmt.Sprintf(format, args...)})
}

// Definite returns err if it is definite, and otherwise wraps it in driver.ErrUnavailable.
func Definite(err error) error {
	if driver.Definite(err) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrUnavailable, err)
}

// Failed adds a check that has failed. Its error is definite: no lock was touched.
func (f *Findings) Failed(key string, err error) {
	err = Definite(err)
	f.Add(driver.Finding{Level: driver.Fail, Key: key, Text: err.Error(), Err: err})
}

// Add adds a finding.
func (f *Findings) Add(finding driver.Finding) { *f = append(*f, finding) }

// TryLocks acquires, extends and releases a lock of a random name a few times. It judges whether
// the requests are fast enough for leases with that TTL.
func (f *Findings) TryLocks(ctx context.Context, e driver.Engine, ttl time.Duration) {
	var took []time.Duration
	for range tries {
		began := time.Now()
		if err := tryLock(ctx, e); err != nil {
			f.Failed("locks", err)
			return
		}
		took = append(took, time.Since(began)/3)
	}
	slices.Sort(took)
	f.Found(driver.OK, "locks", "acquire, extend and release do what they should")
	median := took[tries/2]
	f.Add(Trip("request", median, ttl, Brief(median)+" each", ""))
}

// Trip judges the time that a request, or a part of its way, takes: a renewal and its repeats must
// fit into a third of the TTL. text says how long it takes, and a warning ends with advice.
func Trip(key string, took, ttl time.Duration, text, advice string) driver.Finding {
	f := driver.Finding{
		Key: key, Measures: map[string]time.Duration{key: took, "ttl": ttl},
		Text: fmt.Sprintf("%s, for a TTL of %s", text, ttl),
	}
	if took > ttl/perTTL {
		f.Level = driver.Warn
		f.Text += fmt.Sprintf(": renewals may come too late: use a TTL of at least %s%s", (perTTL * took).Round(time.Millisecond), advice)
	}
	return f
}

// Clock judges a server's clock by its offset from the local clock. Locks do not depend on that
// offset, but it shows that one of the clocks is wrong, and may be set.
func Clock(offset, uncertainty time.Duration) driver.Finding {
	shift := " ahead of"
	if offset < 0 {
		shift = " behind"
	}
	f := driver.Finding{
		Key: "clock", Measures: map[string]time.Duration{"offset": offset, "uncertainty": uncertainty},
		Text: Brief(offset.Abs()) + shift + " ours, give or take " + Brief(uncertainty),
	}
	if offset.Abs() > ClockStep+uncertainty {
		f.Level = driver.Warn
		f.Text += ": one of the two is wrong, and a server's clock that is set forward ends leases early: run NTP on both, and let it slew"
	}
	return f
}

// Brief rounds a duration for people.
func Brief(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

func tryLock(ctx context.Context, e driver.Engine) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	name, id := driver.ProbePrefix+string(lockinfo.NewLeaseID()), lockinfo.NewLeaseID()
	reply, err := e.Acquire(ctx, driver.AcquireRequest{
		Name: name, LeaseID: id, TTL: tryTTL, Holder: lockinfo.Holder{Label: "holdfast doctor"},
	})
	if err == nil && reply.Outcome != driver.Granted {
		err = fmt.Errorf("%w: a new name is not free", driver.ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("acquire fails: %w", err)
	}
	if err := e.Extend(ctx, []driver.ExtendRequest{{Name: name, LeaseID: id, TTL: 2 * tryTTL}})[0]; err != nil {
		return fmt.Errorf("extend fails: %w", err)
	}
	if err := e.Release(ctx, driver.ReleaseRequest{Name: name, LeaseID: id}); err != nil {
		return fmt.Errorf("release fails: %w", err)
	}
	return nil
}
