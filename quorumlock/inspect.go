package quorumlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Inspect implements driver.Engine: it reports the lease that a majority of
// the members has. LastToken may be that of a request that was not granted,
// but is never less than that of the latest grant. It fails with ErrNoQuorum
// if no majority answers, or if those that answer do not tell enough.
func (e *Engine) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	if err := e.enter(ctx); err != nil {
		return driver.Lock{}, err
	}
	defer e.running.Done()
	answers := ask(e, e.timeout(0), e.all(), func(ctx context.Context, i int) (driver.Lock, error) {
		return e.members[i].Inspect(ctx, name)
	})
	v := view{quorum: e.quorum, members: len(e.members)}
	began := time.Now()
	var grace <-chan time.Time
	for range e.members {
		if v.complete() && grace == nil {
			// Those that are slower may know of a later expiry.
			timer := time.NewTimer(v.grace(began))
			defer timer.Stop()
			grace = timer.C
		}
		select {
		case a := <-answers:
			v.add(a.value, a.err)
		case <-grace:
			return v.lock(name), nil
		case <-ctx.Done():
			return driver.Lock{}, ctx.Err()
		case <-e.life.Done():
			return driver.Lock{}, errClosing
		}
	}
	if !v.complete() {
		return driver.Lock{}, v.failure()
	}
	return v.lock(name), nil
}

// A view is what the members say of one name.
type view struct {
	quorum, members int
	locks           []driver.Lock
	errs            []error
}

func (v *view) add(lock driver.Lock, err error) {
	if err != nil {
		v.errs = append(v.errs, err)
		return
	}
	v.locks = append(v.locks, lock)
}

// holdings returns the leases that the members have, each with what the
// members say of it. Leases with the same ID and token are the same.
func (v *view) holdings() [][]driver.Holding {
	var all [][]driver.Holding
	for _, lock := range v.locks {
		for _, h := range lock.Holders {
			same := func(seen []driver.Holding) bool {
				return seen[0].LeaseID == h.LeaseID && seen[0].Token == h.Token && seen[0].Released == h.Released
			}
			if i := slices.IndexFunc(all, same); i >= 0 {
				all[i] = append(all[i], h)
			} else {
				all = append(all, []driver.Holding{h})
			}
		}
	}
	return all
}

// complete reports whether no further answer could change who is seen to hold
// the lock.
func (v *view) complete() bool {
	if len(v.locks) < v.quorum {
		return false
	}
	missing := v.members - len(v.locks)
	for _, same := range v.holdings() {
		if len(same) < v.quorum && len(same)+missing >= v.quorum {
			return false
		}
	}
	return true
}

// grace returns how long members that are pending are waited for. If those that
// answered do not agree on a lease's end, an extension is on its way to some of
// them, or only some of them have been repaired.
func (v *view) grace(began time.Time) time.Duration {
	for _, same := range v.holdings() {
		least, most := same[0].ExpiresIn, same[0].ExpiresIn
		for _, h := range same {
			least, most = min(least, h.ExpiresIn), max(most, h.ExpiresIn)
		}
		if most-least > patience {
			return patience
		}
	}
	return graceAfter(began)
}

// lock returns what a majority has.
func (v *view) lock(name string) driver.Lock {
	lock := driver.Lock{Name: name}
	for _, l := range v.locks {
		// A member lifts its counter to an odd number when a token is withdrawn.
		lock.LastToken = max(lock.LastToken, l.LastToken&^1)
	}
	for _, same := range v.holdings() {
		if len(same) < v.quorum {
			continue
		}
		// The lease is over when fewer than a majority have it.
		slices.SortFunc(same, func(a, b driver.Holding) int { return cmp.Compare(ends(b.ExpiresIn), ends(a.ExpiresIn)) })
		lock.Holders = append(lock.Holders, same[v.quorum-1])
	}
	return lock
}

func (v *view) failure() error {
	if len(v.locks) < v.quorum {
		return missing(v.errs, v.quorum, v.members, 0)
	}
	return fmt.Errorf("%w: the members that answer do not agree, and %d did not answer, the first because: %s",
		ErrNoQuorum, len(v.errs), v.errs[0].Error())
}
