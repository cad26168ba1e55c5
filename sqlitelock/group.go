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

// Group commit: requests that arrive during a transaction wait in the queue, and the next
// transaction applies them all as one batch. A batch costs hardly more than one request: one write
// lock, one check of the files, one commit. Requests are never delayed to fill a batch.

// batchNames bounds the number of names in a batch, so that a transaction stays short. A request
// for more names is a batch of its own.
const batchNames = 64

// A request is a write request.
type request struct {
	ctx     context.Context
	do      func(t *tx) error // may run again, after a rollback
	names   int               // how many names it concerns
	durable bool              // it must survive a power cut
	alone   bool              // it was in a batch that failed

	done chan struct{} // closed once the result is known
	t    *tx           // the result
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

// A queue holds the requests that wait for a transaction. INVARIANT I7: they are in the order of
// their arrival, in which they also get places.
type queue struct {
	mu      sync.Mutex
	waiting []*request
}

func (q *queue) add(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
}

// remove reports whether r was waiting. If so, it has had no effect and will have none.
func (q *queue) remove(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// putBack returns requests to the front of the queue.
func (q *queue) putBack(rs []*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.Insert(q.waiting, 0, rs...)
}

// durable reports whether the next batch may contain a durable request.
func (q *queue) durable() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.waiting[:q.next(true)], func(r *request) bool { return r.durable })
}

// take removes the next batch. Requests whose context has ended are finished instead.
func (q *queue) take(durable bool) []*request {
	q.mu.Lock()
	n := q.next(durable)
	batch := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	q.mu.Unlock()
	return slices.DeleteFunc(batch, func(r *request) bool {
		ended := r.ctx.Err() != nil
		if ended {
			r.finish(nil, interrupted(r.ctx))
		}
		return ended
	})
}

// next returns how many requests fit into the next transaction; durable says whether it is durable.
func (q *queue) next(durable bool) int {
	names := 0
	for i, r := range q.waiting {
		names += r.names
		if i > 0 && (names > batchNames || r.alone || q.waiting[0].alone) || r.durable && !durable {
			return i
		}
	}
	return len(q.waiting)
}

// submit queues a request and returns its transaction. The caller that gets the turn works for all
// requests in the queue, until its own is done.
func (e *engine) submit(r *request) (*tx, error) {
	r.done = make(chan struct{})
	e.queue.add(r)
	var ended error
	select {
	case e.turn <- struct{}{}:
		e.work(r)
		<-e.turn
	case <-r.done:
	case <-r.ctx.Done():
		ended = interrupted(r.ctx)
	case <-e.closing:
		ended = driver.ErrClosed
	}
	if ended != nil && e.queue.remove(r) {
		return nil, ended
	}
	<-r.done
	return r.t, r.err
}

// work flushes batches until r is done. Its caller has the turn.
func (e *engine) work(r *request) {
	for !r.finished() {
		if err := e.flush(r.ctx); err != nil {
			e.queue.remove(r) // the other callers try themselves
			r.finish(nil, err)
		}
	}
}

// flush applies the next batch in one transaction. It fails if the transaction cannot begin;
// nothing has happened then. It takes the batch as late as possible, because more requests may
// arrive, and others may leave, during the wait.
func (e *engine) flush(ctx context.Context) error {
	durable := e.queue.durable()
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
		err = e.checkStore()
	}
	batch := e.queue.take(durable)
	if err == nil {
		batch, err = e.apply(now, batch)
	}
	e.end(batch, err)
	return nil
}

// apply runs as many requests of a batch as the bounds of the transaction allow, and returns these.
// The others go back to the queue.
func (e *engine) apply(now reader, batch []*request) ([]*request, error) {
	all := &tx{reader: now, history: e.history}
	for i, r := range batch {
		if all.steps >= maxSteps {
			e.queue.putBack(batch[i:])
			batch = batch[:i]
			break
		}
		r.t = &tx{reader: now, history: e.history, steps: all.steps}
		err := r.do(r.t)
		if r.t.again = errors.Is(err, errUnfinished); r.t.again {
			err = nil
		}
		if err != nil {
			return batch, err
		}
		all.steps, all.added = r.t.steps, all.added+r.t.added
	}
	if len(batch) == 1 && batch[0].ctx.Err() != nil {
		return batch, interrupted(batch[0].ctx)
	}
	return batch, e.sweep(all)
}

// checkStore fails if other processes use different files, or a member of a system store's
// group has changed its schema.
func (e *engine) checkStore() error {
	if err := e.files.Same(); err != nil || !e.system {
		return err
	}
	return checkUnaltered(e.conn)
}

// end commits the transaction of a batch, or rolls it back if err is set, and finishes the
// requests. If a batch of several has failed, each of its requests is retried alone.
func (e *engine) end(batch []*request, err error) {
	if err == nil {
		err = e.commit()
	} else {
		_ = e.conn.run(rollbackSQL) // fails only if SQLite has rolled back itself
		if err = refused(err); len(batch) > 1 {
			e.retryAlone(batch)
			return
		}
	}
	for _, r := range batch {
		r.finish(r.t, err)
	}
}

func (e *engine) retryAlone(batch []*request) {
	for _, r := range batch {
		r.alone = true
	}
	e.queue.putBack(batch)
}

// commit commits the transaction. If it fails, the outcome is unknown.
func (e *engine) commit() error {
	if err := e.conn.run(commitSQL); err != nil {
		_ = e.conn.run(rollbackSQL)
		return fmt.Errorf("the commit failed, and may show after a crash: %w", err)
	}
	// INVARIANT I1: a commit that other processes may not see is not confirmed. If the files are in
	// place now, they were in place when the commit was written.
	if err := e.files.Same(); err != nil {
		return fmt.Errorf("the commit may be lost: %w", err)
	}
	return nil
}
