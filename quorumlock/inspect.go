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
	v := view{quorum: e.quorum, members: len(e.members)}
	answers := tell(e, e.timeout(0), func(ctx context.Context, i int) (driver.Lock, error) {
		return e.members[i].Inspect(ctx, name)
	})
	h, err := hear(ctx, e, answers, func(locks []driver.Lock) (bool, time.Duration) {
		v.locks = locks
		return v.complete(), v.disagreement()
	})
	if err != nil {
		return driver.Lock{}, err
	}
	if v.locks, v.errs = h.answers, h.errs; !v.complete() {
		return driver.Lock{}, v.failure()
	}
	return v.lock(name), nil
}

// A view is what the members say of one name.
type view struct {
	quorum, members int           // how many are a majority, and how many there are
	locks           []driver.Lock // of the members that have answered
	errs            []error       // of those that failed
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
// the lock: a majority has answered, and each lease has a majority already, or
// would not have one with all the answers that are missing. Those of members that
// failed are missing too.
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

// disagreement returns how long members that are pending are worth waiting for if
// those that answered do not agree on a lease's end: then an extension is on its way
// to some of them, or only some of them have been repaired, and those that are
// slower may know of a later expiry.
func (v *view) disagreement() time.Duration {
	for _, same := range v.holdings() {
		least, most := same[0].ExpiresIn, same[0].ExpiresIn
		for _, h := range same {
			least, most = min(least, h.ExpiresIn), max(most, h.ExpiresIn)
		}
		if most-least > patience {
			return patience
		}
	}
	return 0
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
		// The lease is over when fewer than a majority have it: of their expiries,
		// the latest first, that is the one of the last that makes a majority.
		slices.SortFunc(same, func(a, b driver.Holding) int { return cmp.Compare(ends(b.ExpiresIn), ends(a.ExpiresIn)) })
		h := same[v.quorum-1]
		// The one that has had it for the longest knows whose it is, and since when:
		// others were asked later, or repaired by an engine that did not acquire it.
		longest := slices.MaxFunc(same, func(a, b driver.Holding) int { return cmp.Compare(a.Since, b.Since) })
		h.Holder, h.Since = longest.Holder, longest.Since
		lock.Holders = append(lock.Holders, h)
	}
	return lock
}

// failure explains a view that is not complete though nobody is pending.
func (v *view) failure() error {
	if len(v.locks) < v.quorum {
		return missing(v.errs, v.quorum, v.members, 0)
	}
	return fmt.Errorf("%w: the members that answer do not agree, and %d did not answer, the first because: %s",
		ErrNoQuorum, len(v.errs), v.errs[0].Error())
}
