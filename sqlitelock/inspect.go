package sqlitelock

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// Inspect implements driver.Engine. It does not wait for writers.
func (e *Engine) Inspect(ctx context.Context, name string) (driver.Lock, error) {
	lock := driver.Lock{Name: name}
	err := e.query(ctx, func() error {
		l, err := e.find(e.read.lease, name)
		if err != nil {
			return err
		}
		// After the lease, so that the last token is not behind the lease's.
		if _, err := one(e.read.lastToken, []any{name}, &lock.LastToken); err != nil {
			return err
		}
		now, err := e.clock.now()
		if err != nil {
			return err
		}
		lock.Holders = l.holdings(now)
		return nil
	})
	if err != nil {
		return driver.Lock{}, err
	}
	return lock, nil
}

// holdings returns the lease as the only holding of its name, or none if it
// is over.
func (l *lease) holdings(now instant) []driver.Holding {
	if !l.live(now) {
		return nil
	}
	return []driver.Holding{{
		LeaseID: driver.LeaseID(l.id), Token: uint64(l.token), Holder: l.describe(),
		ExpiresIn: l.expiresIn(now), Released: l.released,
	}}
}

// pageRows is the number of rows that List reads in one step.
const pageRows = 256

// List implements driver.Lister, in the order of the names. No statement is
// open while the caller's loop body runs, which may use the engine.
func (e *Engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Lock, error] {
	return func(yield func(driver.Lock, error) bool) {
		for last, more := "", true; more; {
			var locks []driver.Lock
			var err error
			if locks, last, more, err = e.page(ctx, prefix, last); err != nil {
				yield(driver.Lock{}, err)
				return
			}
			for _, l := range locks {
				if !yield(l, nil) {
					return
				}
			}
		}
	}
}

// page reads one step of List: the rows after the name last. It returns the
// locks among them, the last name read, and whether there may be more.
func (e *Engine) page(ctx context.Context, prefix, after string) (locks []driver.Lock, last string, more bool, err error) {
	err = e.query(ctx, func() error {
		locks, last, more = nil, after, false
		rows, err := e.read.page.QueryContext(context.Background(), prefix, after, pageRows, e.clock.bootID)
		if err != nil {
			return err
		}
		defer rows.Close()
		now, err := e.clock.now()
		if err != nil {
			return err
		}
		n := 0
		for ; rows.Next(); n++ {
			var l lease
			var thisBoot bool
			lock := driver.Lock{}
			into := append(append([]any{&lock.Name}, l.columns()...), &thisBoot, &lock.LastToken)
			if err := rows.Scan(into...); err != nil {
				return err
			}
			if !strings.HasPrefix(lock.Name, prefix) {
				return nil // in the order of the names, none follows that has it
			}
			last = lock.Name
			if lock.Holders = l.holdings(now); thisBoot && lock.Holders != nil {
				locks = append(locks, lock)
			}
		}
		more = n == pageRows
		return rows.Err()
	})
	return locks, last, more, err
}
