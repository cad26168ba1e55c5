package quorumlock

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// List implements driver.Lister. It yields the locks that a majority of the members has. It waits
// for a slow member only if that one may complete the majority for a name. It fails with
// driver.ErrUnsupported if a member cannot list.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return driver.Listed(func() ([]lockinfo.LockState, error) { return e.list(ctx, prefix) })
}

func (e *engine) list(ctx context.Context, prefix string) ([]lockinfo.LockState, error) {
	h, err := e.lists(ctx, prefix, func(answers [][]lockinfo.LockState) (decided bool, least time.Duration) {
		for _, v := range e.views(answers) {
			if !v.complete() {
				return false, 0
			}
			least = max(least, v.disagreement())
		}
		return true, least
	})
	if err == nil && len(h.answers) < e.quorum {
		err = e.missing(h.errs)
	}
	if err != nil {
		return nil, err
	}
	var agreed []lockinfo.LockState
	for name, v := range e.views(h.answers) {
		if lock := v.lock(name); len(lock.Holders) > 0 {
			agreed = append(agreed, lock)
		}
	}
	return agreed, nil
}

// lists collects the lists of the members; see collect. It uses the caller's time limit, not a
// member's, because a list may be long.
func (e *engine) lists(ctx context.Context, prefix string, enough func([][]lockinfo.LockState) (bool, time.Duration)) (collection[[]lockinfo.LockState], error) {
	if err := e.enterIf(ctx, e.capable.List, "listing"); err != nil {
		return collection[[]lockinfo.LockState]{}, err
	}
	defer e.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return collect(ctx, e, 0, func(_ context.Context, i int) (locks []lockinfo.LockState, err error) {
		for lock, err := range e.features[i].Lister.List(ctx, prefix) {
			if err != nil { // with half a list, a lease of a majority would look like one of a minority
				return nil, fmt.Errorf("%s: %w", label(e.members[i], i), err)
			}
			locks = append(locks, lock)
		}
		return locks, nil
	}, enough)
}

// views returns the members' answers about each name that one of them has. A member whose list
// lacks the name answers that it has no lease.
func (e *engine) views(answers [][]lockinfo.LockState) map[string]*view {
	views := map[string]*view{}
	for i, locks := range answers {
		for _, lock := range locks {
			if views[lock.Name] == nil {
				views[lock.Name] = &view{engine: e, locks: make([]lockinfo.LockState, len(answers))}
			}
			views[lock.Name].locks[i] = lock
		}
	}
	return views
}
