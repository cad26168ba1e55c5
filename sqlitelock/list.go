package sqlitelock

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// pageNames is the number of names that List reads in one step.
const pageNames = 256

// List implements driver.Lister, in the order of the names, without the
// queues. No statement is open while the caller's loop body runs, which may
// use the engine.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	name := func(l lockinfo.LockState) string { return l.Name }
	locks := paged(ctx, e, prefix, pageNames, name, func(r reader, last string) ([]lockinfo.LockState, error) { return r.page(prefix, last) })
	return func(yield func(lockinfo.LockState, error) bool) {
		for l, err := range locks {
			if (err != nil || len(l.Holders) > 0 || l.QueueLength > 0) && !yield(l, err) {
				return
			}
		}
	}
}

// paged yields all names that begin with prefix. Each call of page reads up to size names
// after the last one.
func paged[T any](ctx context.Context, e *engine, prefix string, size int, name func(T) string, page func(r reader, last string) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for last, more := "", true; more; {
			found, err := answer(ctx, e.query, func(r reader) ([]T, error) { return page(r, last) })
			if err != nil {
				yield(*new(T), err)
				return
			}
			more = len(found) == size
			for _, f := range found {
				if last = name(f); !strings.HasPrefix(last, prefix) {
					return // names are in order: no later one has the prefix
				}
				if !yield(f, nil) {
					return
				}
			}
		}
	}
}

// page reads one step of List: the names after a given one, free ones too.
func (r *reader) page(prefix, after string) ([]lockinfo.LockState, error) {
	lines, err := scanAll(r.sql, pageSQL, []any{prefix, after, pageNames, r.bootID, r.now.boot}, (*listed).columns)
	if err != nil {
		return nil, err
	}
	var locks []lockinfo.LockState
	for _, l := range lines {
		if len(locks) == 0 || locks[len(locks)-1].Name != l.name {
			locks = append(locks, lockinfo.LockState{Name: l.name, LastToken: l.lastToken, QueueLength: l.queue})
		}
		if l.id != "" {
			l.addTo(&locks[len(locks)-1], r.now)
		}
	}
	return locks, nil
}

// A listed is one line of a page: a name with one of its leases, if it has
// any.
type listed struct {
	name      string
	lastToken uint64
	queue     int
	lease
}

func (l *listed) columns() []any {
	return append([]any{&l.name, &l.lastToken, &l.queue}, l.lease.columns()...)
}
