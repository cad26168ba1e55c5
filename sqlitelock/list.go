package sqlitelock

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-locks/holdfast/lockinfo"
)

// pageNames is the number of names that List reads in one step.
const pageNames = 256

// List implements driver.Lister. It yields locks in the order of their names, without their queues.
// No statement is open while the caller's loop body runs, so the body may use the engine.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return paged(ctx, e, prefix, listing[lockinfo.LockState]{
		size:  pageNames,
		read:  func(r reader, after string) ([]lockinfo.LockState, error) { return r.page(prefix, after) },
		name:  func(l lockinfo.LockState) string { return l.Name },
		shown: func(l lockinfo.LockState) bool { return len(l.Holders) > 0 || l.QueueLength > 0 },
	})
}

// A listing is a list that is read in steps.
type listing[T any] struct {
	size  int                                       // of a step
	read  func(r reader, after string) ([]T, error) // up to size names after the last one
	name  func(T) string
	shown func(T) bool
}

// paged yields the shown items whose names begin with prefix.
func paged[T any](ctx context.Context, e *engine, prefix string, list listing[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for last, more := "", true; more; {
			found, err := answer(ctx, e.query, func(r reader) ([]T, error) { return list.read(r, last) })
			if err != nil {
				yield(*new(T), err)
				return
			}
			more = len(found) == list.size
			for _, f := range found {
				if last = list.name(f); !strings.HasPrefix(last, prefix) {
					return // names are in order: no later one has the prefix
				}
				if list.shown(f) && !yield(f, nil) {
					return
				}
			}
		}
	}
}

// page reads one step of List: the names after the given one, including free names.
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
	lastToken uint64
	queue     int
	row
}

func (l *listed) columns() []any {
	return append([]any{&l.lastToken, &l.queue}, l.row.columns()...)
}
