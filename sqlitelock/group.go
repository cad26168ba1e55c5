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

// Group commit: requests that arrive while a transaction is under way wait in the queue,
// and the next transaction applies them all as one batch. A batch costs hardly more than
// one request: one write lock, one look at the files, one commit. Requests are never
// delayed to fill a batch.

// batchNames bounds how many names the requests of a batch are about, so that a
// transaction stays short. A request about more names is a batch of its own.
const batchNames = 64

// A request is one that writes.
type request struct {
	ctx     context.Context
	do      func(t *tx) error // may run again, after a rollback
	names   int               // how many it is about
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

// A queue has the requests that wait for a transaction. INVARIANT I7: in the order of
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

// remove reports whether r waited: then it has had no effect and will have none.
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

// durable reports whether a request that may be in the next batch is durable.
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

// next returns how many requests fit into one transaction, which is durable or not.
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

// submit queues a request and returns its transaction. The caller that gets the turn works
// for all requests in the queue, until its own is done.
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
			e.queue.remove(r) // the other callers try for themselves
			r.finish(nil, err)
		}
	}
}

// flush applies the next batch in one transaction. It fails if the transaction cannot
// begin: then nothing has happened. It takes the batch as late as possible, because more
// requests may arrive, and others leave, during the wait.
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

// apply runs the requests of a batch, as many as the bounds of the transaction allow, and
// returns those. The others go back to the queue.
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
	return e.checkUnaltered(e.conn)
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

// commit ends the transaction. If it fails the outcome is unknown.
func (e *engine) commit() error {
	if err := e.conn.run(commitSQL); err != nil {
		_ = e.conn.run(rollbackSQL)
		return fmt.Errorf("the commit failed, and may show after a crash: %w", err)
	}
	// INVARIANT I1: a commit that other processes may not see is not confirmed. If the
	// files are in place now, they were when the commit was written.
	if err := e.files.Same(); err != nil {
		return fmt.Errorf("the commit may be lost: %w", err)
	}
	return nil
}
