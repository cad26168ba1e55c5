package quorumlock

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// List implements driver.Lister. It yields the locks that a majority of the members has, after all
// members have answered or failed. It fails with driver.ErrUnsupported if a member cannot list.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return driver.Listed(func() ([]lockinfo.LockState, error) { return e.list(ctx, prefix) })
}

func (e *engine) list(ctx context.Context, prefix string) ([]lockinfo.LockState, error) {
	h, err := e.lists(ctx, prefix)
	if err == nil && len(h.answers) < e.quorum {
		err = e.missing(h.errs)
	}
	if err != nil {
		return nil, err
	}
	return e.agreed(h.answers), nil
}

// lists waits for all members, because the slowest may complete the majority for a name. It uses
// the caller's time limit, not a member's, because a list may be long.
func (e *engine) lists(ctx context.Context, prefix string) (collection[[]lockinfo.LockState], error) {
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
	}, nil)
}

// agreed returns the locks that a majority of the members has.
func (e *engine) agreed(answers [][]lockinfo.LockState) []lockinfo.LockState {
	views := map[string]*view{}
	for _, locks := range answers {
		for _, lock := range locks {
			if views[lock.Name] == nil {
				views[lock.Name] = &view{engine: e}
			}
			view := views[lock.Name]
			view.locks = append(view.locks, lock)
		}
	}
	var agreed []lockinfo.LockState
	for name, v := range views {
		if lock := v.lock(name); len(lock.Holders) > 0 {
			agreed = append(agreed, lock)
		}
	}
	return agreed
}
