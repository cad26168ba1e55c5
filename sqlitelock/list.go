package sqlitelock

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// pageNames is the number of names that List reads in one step.
const pageNames = 256

// List implements driver.Lister, in the order of the names, without the
// queues. No statement is open while the caller's loop body runs, which may
// use the engine.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Lock, error] {
	return func(yield func(driver.Lock, error) bool) {
		for last, more := "", true; more; {
			locks, err := answer(ctx, e.query, func(r reader) ([]driver.Lock, error) { return r.page(prefix, last) })
			if err != nil {
				yield(driver.Lock{}, err)
				return
			}
			more = len(locks) == pageNames
			for _, l := range locks {
				if last = l.Name; !strings.HasPrefix(last, prefix) {
					return // in the order of the names, none follows that has it
				}
				if (len(l.Holders) > 0 || l.QueueLength > 0) && !yield(l, nil) {
					return
				}
			}
		}
	}
}

// page reads one step of List: the names after a given one, free ones too.
func (r *reader) page(prefix, after string) ([]driver.Lock, error) {
	lines, err := all(r.sql, pageSQL, []any{prefix, after, pageNames, r.bootID, r.now.boot}, (*listed).columns)
	if err != nil {
		return nil, err
	}
	var locks []driver.Lock
	for _, l := range lines {
		if len(locks) == 0 || locks[len(locks)-1].Name != l.name {
			locks = append(locks, driver.Lock{Name: l.name, LastToken: l.lastToken, QueueLength: l.queue})
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
