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
	return func(yield func(driver.Lock, error) bool) {
		locks, err := e.list(ctx, prefix)
		if err != nil {
			yield(driver.Lock{}, err)
			return
		}
		for _, lock := range locks {
			if !yield(lock, nil) {
				return
			}
		}
	}
}

func (e *Engine) list(ctx context.Context, prefix string) ([]driver.Lock, error) {
	if err := e.cannotList(); err != nil {
		return nil, err
	}
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Not through ask: a list takes as long as it takes, within the caller's time.
	answers := make(chan result[[]driver.Lock], len(e.members))
	for i, f := range e.features {
		e.running.Go(func() {
			locks, err := listMember(ctx, f.Lister, prefix)
			answers <- result[[]driver.Lock]{from: i, value: locks, err: err}
		})
	}
	// All members that answer are heard: a list is for people, and a name that only
	// the slowest would have made a majority for should not be left out.
	var heard [][]driver.Lock
	var errs []error
	for range e.members {
		select {
		case a := <-answers:
			if a.err != nil {
				errs = append(errs, a.err)
			} else {
				heard = append(heard, a.value)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-e.life.Done():
			return nil, errClosing
		}
	}
	if len(heard) < e.quorum {
		return nil, missing(errs, e.quorum, len(e.members), 0)
	}
	return e.agreed(heard), nil
}

// cannotList returns an error unless every member can list.
func (e *Engine) cannotList() error {
	if e.capable.List {
		return nil
	}
	return fmt.Errorf("listing is %w: a member cannot", driver.ErrUnsupported)
}

// listMember returns all that one member lists, or an error: half a list would make
// leases of a majority look like those of a minority.
func listMember(ctx context.Context, lister driver.Lister, prefix string) ([]driver.Lock, error) {
	var locks []driver.Lock
	for lock, err := range lister.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		locks = append(locks, lock)
	}
	return locks, nil
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
