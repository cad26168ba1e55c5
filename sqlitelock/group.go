package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Requests that write go in groups: those that come while a transaction is under
// way wait in line, and the next transaction carries them all out. It costs hardly
// more than one of them: one write lock, one look at the files, one commit. Nobody
// waits for company, and a request without any goes alone.

// groupNames bounds how many names the requests of a group are about, so that a
// transaction stays short. A request about more goes alone.
const groupNames = 64

// A request is one that writes.
type request struct {
	ctx     context.Context
	do      func(t *tx) error // may be run again, after what it did was rolled back
	names   int               // which it is about
	durable bool              // it must outlive a power cut
	alone   bool              // it was in a group that failed

	done chan struct{} // closed once the rest is known
	t    *tx           // what came of it
	err  error
}

func (r *request) finish(t *tx, err error) {
	r.t, r.err = t, err
	close(r.done)
}

func (r *request) finished() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// A line is the requests that wait for their turn. INVARIANT I7: in the order in
// which they came, which is that of the places that they get.
type line struct {
	mu      sync.Mutex
	waiting []*request
}

func (l *line) join(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, r)
}

// leave reports whether r waited: then nothing was done for it, and nothing will be.
func (l *line) leave(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, r)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	return i >= 0
}

// giveBack puts requests in front of the line, where they came from.
func (l *line) giveBack(rs []*request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.Insert(l.waiting, 0, rs...)
}

// durable reports whether there is a durable one among those that may go next.
func (l *line) durable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.waiting[:l.next(true)], func(r *request) bool { return r.durable })
}

// take removes those from the line that go next.
func (l *line) take(durable bool) []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.next(durable)
	group := slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	return group
}

// next returns how many may go next, in one transaction that is durable or not.
func (l *line) next(durable bool) int {
	names := 0
	for i, r := range l.waiting {
		names += r.names
		if i > 0 && (names > groupNames || r.alone || l.waiting[0].alone) || r.durable && !durable {
			return i
		}
	}
	return len(l.waiting)
}

// oneTurn waits until a request is carried out, by whoever has the turn, and
// returns its transaction.
func (e *Engine) oneTurn(r *request) (*tx, error) {
	r.done = make(chan struct{})
	e.line.join(r)
	var gone error
	select {
	case e.turn <- struct{}{}:
		e.lead(r)
		<-e.turn
	case <-r.done:
	case <-r.ctx.Done():
		gone = interrupted(r.ctx)
	case <-e.closing:
		gone = driver.ErrClosed
	}
	if gone != nil && e.line.leave(r) {
		return nil, gone
	}
	<-r.done
	return r.t, r.err
}

// lead carries out what is in line until r is done, for whoever has the turn.
func (e *Engine) lead(r *request) {
	for !r.finished() {
		if err := e.nextGroup(r.ctx); err != nil {
			e.line.leave(r) // the others try for themselves
			r.finish(nil, err)
		}
	}
}

// nextGroup carries out the requests that are next. It fails if there is no
// transaction for them: then nothing has happened. The line is not looked at
// before the transaction has begun, because that may take long, and until then
// all are free to leave it.
func (e *Engine) nextGroup(ctx context.Context) error {
	durable := e.line.durable()
	if durable {
		if err := e.conn.execute(`PRAGMA synchronous = FULL`); err != nil {
			return refused(err)
		}
		defer func() { _ = e.conn.execute(settings) }()
	}
	e.giveWay()
	defer func() { e.stint.ended = time.Now() }()
	if err := e.patient(ctx, func() error { return e.conn.run(beginSQL) }); err != nil {
		return refused(err)
	}
	now, err := e.reader(e.conn)
	if err == nil {
		err = e.files.same(e.path)
	}
	if err == nil && e.system {
		err = e.checkUnaltered(e.conn)
	}
	group := slices.DeleteFunc(e.line.take(durable), func(r *request) bool {
		ended := r.ctx.Err() != nil
		if ended {
			r.finish(nil, interrupted(r.ctx))
		}
		return ended
	})
	if err == nil {
		group, err = e.carryOut(now, group)
	}
	if err == nil {
		err = e.commit()
	} else {
		_ = e.conn.run(rollbackSQL) // fails only if SQLite has rolled back itself
		if err = refused(err); len(group) > 1 {
			e.separate(group)
			return nil
		}
	}
	for _, r := range group {
		r.finish(r.t, err)
	}
	return nil
}

// carryOut carries requests out in a transaction that has begun, as far as its
// bounds allow, and returns those. The others are in line again.
func (e *Engine) carryOut(now reader, group []*request) ([]*request, error) {
	all := &tx{reader: now, history: e.history}
	for i, r := range group {
		if all.steps >= maxSteps {
			e.line.giveBack(group[i:])
			group = group[:i]
			break
		}
		r.t = &tx{reader: now, history: e.history, steps: all.steps}
		err := r.do(r.t)
		if r.t.again = errors.Is(err, errUnfinished); r.t.again {
			err = nil
		}
		if err != nil {
			return group, err
		}
		all.steps, all.added = r.t.steps, all.added+r.t.added
	}
	if len(group) == 1 && group[0].ctx.Err() != nil {
		return group, interrupted(group[0].ctx)
	}
	return group, e.sweep(all)
}

// separate puts the requests of a group that has failed in line again, each to go
// alone, so that the failure is that of one of them.
func (e *Engine) separate(group []*request) {
	for _, r := range group {
		r.alone = true
	}
	e.line.giveBack(group)
}

// commit ends the transaction. If it fails the outcome is unknown.
func (e *Engine) commit() error {
	if err := e.conn.run(commitSQL); err != nil {
		_ = e.conn.run(rollbackSQL)
		return fmt.Errorf("the commit failed, and may show after a crash: %w", err)
	}
	// INVARIANT I1: what others may not have seen is not answered. If the files
	// are in place now, they were when the commit was written.
	if err := e.files.same(e.path); err != nil {
		return fmt.Errorf("the commit may be lost: %w", err)
	}
	return nil
}
