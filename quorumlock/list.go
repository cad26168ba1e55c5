package quorumlock

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-locks/holdfast/driver"
)

// List implements driver.Lister. It yields what a majority of the members has,
// after it has heard all members that answer. It fails with
// driver.ErrUnsupported if a member cannot list.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Lock, error] {
	return driver.Listed(func() ([]driver.Lock, error) { return e.list(ctx, prefix) })
}

func (e *Engine) list(ctx context.Context, prefix string) ([]driver.Lock, error) {
	h, err := e.lists(ctx, prefix)
	if err == nil && len(h.answers) < e.quorum {
		err = e.missing(h.errs)
	}
	if err != nil {
		return nil, err
	}
	return e.agreed(h.answers), nil
}

// lists hears all members: lists are for people, and a name that only the slowest
// would have made a majority for should not be left out. It is not tell's time
// limit that counts but the caller's, because a list may be long.
func (e *Engine) lists(ctx context.Context, prefix string) (hearing[[]driver.Lock], error) {
	if err := e.enterIf(ctx, e.capable.List, "listing"); err != nil {
		return hearing[[]driver.Lock]{}, err
	}
	defer e.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return hear(ctx, e, tell(e, 0, func(_ context.Context, i int) (locks []driver.Lock, err error) {
		for lock, err := range e.features[i].Lister.List(ctx, prefix) {
			if err != nil { // half a list would make leases of a majority look like those of a minority
				return nil, fmt.Errorf("%s: %w", label(e.members[i], i), err)
			}
			locks = append(locks, lock)
		}
		return locks, nil
	}), nil)
}

// agreed returns the locks that a majority of the members has.
func (e *Engine) agreed(heard [][]driver.Lock) []driver.Lock {
	views := map[string]*view{}
	for _, locks := range heard {
		for _, lock := range locks {
			if views[lock.Name] == nil {
				views[lock.Name] = &view{quorum: e.quorum, members: len(e.members)}
			}
			view := views[lock.Name]
			view.locks = append(view.locks, lock)
		}
	}
	var agreed []driver.Lock
	for name, v := range views {
		if lock := v.lock(name); len(lock.Holders) > 0 {
			agreed = append(agreed, lock)
		}
	}
	return agreed
}
