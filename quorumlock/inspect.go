package quorumlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Inspect implements driver.Engine: it reports the lease that a majority of the members has.
// LastToken may be from a request that was not granted, but is never less than the latest grant's.
// Inspect fails with ErrNoQuorum if no majority answers, or the answers do not decide.
func (e *engine) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	if err := e.enter(ctx); err != nil {
		return lockinfo.LockState{}, err
	}
	defer e.running.Done()
	v := view{engine: e}
	send := func(ctx context.Context, i int) (lockinfo.LockState, error) { return e.members[i].Inspect(ctx, name) }
	h, err := collect(ctx, e, e.timeout(0), send, func(locks []lockinfo.LockState) (bool, time.Duration) {
		v.locks = locks
		return v.complete(), v.disagreement()
	})
	if err != nil {
		return lockinfo.LockState{}, err
	}
	if v.locks, v.errs = h.answers, h.errs; !v.complete() {
		return lockinfo.LockState{}, v.failure()
	}
	return v.lock(name), nil
}

// A view is the members' answers about one name.
type view struct {
	*engine
	locks []lockinfo.LockState // of the members that have answered
	errs  []error              // of those that failed
}

// holdings returns the leases of the members, each with all their answers about it. Leases
// with the same ID and token are the same.
func (v *view) holdings() [][]lockinfo.Holding {
	var all [][]lockinfo.Holding
	for _, lock := range v.locks {
		for _, h := range lock.Holders {
			same := func(seen []lockinfo.Holding) bool {
				return seen[0].LeaseID == h.LeaseID && seen[0].Token == h.Token && seen[0].Released == h.Released
			}
			if i := slices.IndexFunc(all, same); i >= 0 {
				all[i] = append(all[i], h)
			} else {
				all = append(all, []lockinfo.Holding{h})
			}
		}
	}
	return all
}

// complete reports whether no further answer could change the holders. That is so if a majority has
// answered, and each lease has a majority, or cannot get one with the missing answers. The answers
// of members that failed are missing too.
func (v *view) complete() bool {
	if len(v.locks) < v.quorum {
		return false
	}
	missing := len(v.members) - len(v.locks)
	return !slices.ContainsFunc(v.holdings(), func(same []lockinfo.Holding) bool {
		return len(same) < v.quorum && len(same)+missing >= v.quorum
	})
}

// disagreement returns how long to wait for pending members if the others disagree about a lease's
// end. An extension or a repair has then reached only some of them, and a slower member may have a
// later expiry.
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

// lock returns the state that a majority has.
func (v *view) lock(name string) lockinfo.LockState {
	lock := lockinfo.LockState{Name: name}
	for _, l := range v.locks {
		// A member lifts its counter to an odd number when a token is withdrawn.
		lock.LastToken = max(lock.LastToken, l.LastToken&^1)
	}
	for _, same := range v.holdings() {
		if len(same) < v.quorum {
			continue
		}
		// The lease ends as soon as fewer than a majority of members have it, which is at the
		// quorum-th latest expiry.
		slices.SortFunc(same, func(a, b lockinfo.Holding) int { return cmp.Compare(ends(b.ExpiresIn), ends(a.ExpiresIn)) })
		h := same[v.quorum-1]
		// The member that has had it longest has the right Holder and Since: others got it later,
		// or by a repair of an engine that did not acquire it.
		longest := slices.MaxFunc(same, func(a, b lockinfo.Holding) int { return cmp.Compare(a.Since, b.Since) })
		h.Holder, h.Since = longest.Holder, longest.Since
		lock.Holders = append(lock.Holders, h)
	}
	return lock
}

// failure returns the error for a view that is not complete after all answers.
func (v *view) failure() error {
	if len(v.locks) < v.quorum {
		return v.missing(v.errs)
	}
	return fmt.Errorf("%w: the members that answer do not agree, and %d did not answer, the first because: %s",
		ErrNoQuorum, len(v.errs), v.errs[0].Error())
}
