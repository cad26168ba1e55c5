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
	limit  = 2 * time.Second // of one try
	tries  = 5               // of which the median counts
	perTTL = 20              // requests that must fit into a TTL
)

// Findings are what a diagnosis has found so far.
type Findings []driver.Finding

// Found adds a finding with a text.
func (f *Findings) Found(level driver.Level, key, format string, args ...any) {
	f.Add(driver.Finding{Level: level, Key: key, Text: fmt.Sprintf(format, args...)})
}

// Definite returns err as one that wraps a definite error: what has no class
// is a store that does not serve.
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

// TryLocks takes, extends and releases a lock of a random name a few times, and judges how
// long a request takes for leases of a TTL.
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
	f.Add(request(took[tries/2], ttl))
}

// request judges how long a request takes.
func request(took, ttl time.Duration) driver.Finding {
	f := driver.Finding{
		Key: "request", Measures: map[string]time.Duration{"request": took, "ttl": ttl},
		Text: fmt.Sprintf("%s each, for a TTL of %s", took.Round(time.Microsecond), ttl),
	}
	if took > ttl/perTTL {
		f.Level = driver.Warn
		f.Text += fmt.Sprintf(": renewals may come too late: use a TTL of at least %s", (perTTL * took).Round(time.Millisecond))
	}
	return f
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
