package rediscore

import (
	"runtime"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
)

// A flusher is a job of the workers. It sends one batch of a queue after another until the queue is
// empty. It uses the store's context, not a caller's: a caller that gives up must not fail the
// others.
type flusher struct {
	batcher *batcher // the batch may have requests of other batchers, too
	route   uint32
	queue   *routeQueue // nil if there is a single batch and no queue

	began      time.Time  // start of the call
	requests   []*request // the batch
	keys, args []string
	results    []int64
	calls      []Call // in a Redis Cluster, to one node
}

func (t *flusher) do() {
	for more := true; more; more = t.next() {
		t.fillUp()
		if parts := t.parts(); len(parts) > 1 || t.queue != nil && t.route != t.requests[0].slot {
			t.sendParts(parts)
		} else {
			t.answer(t.requests, t.send())
		}
		t.clear()
	}
	t.queue = nil
	t.batcher.flushers.Put(t)
}

// takeLocked takes the batch: the requests that have been pending for longest.
func (t *flusher) takeLocked() {
	t.began = time.Now()
	t.queue.latest = t.began
	n := min(len(t.queue.pending), mostRequests-len(t.requests))
	t.requests = append(t.requests, t.queue.pending[:n]...)
	t.queue.pending = slices.Delete(t.queue.pending, 0, n)
}

// fillUp yields to callers that are about to send a request, and adds their requests to the batch.
// Otherwise the callers that have just received their replies would miss this batch, and later
// batches would be small.
func (t *flusher) fillUp() {
	if t.queue == nil {
		return
	}
	runtime.Gosched()
	t.batcher.mu.Lock()
	defer t.batcher.mu.Unlock()
	t.takeLocked()
}

// answer answers requests with results, or with the error.
func (t *flusher) answer(requests []*request, err error) {
	if err == nil && len(t.results) != len(requests) {
		err = form.Malformed("a plain request", t.results)
	}
	for i, r := range requests {
		v := result{err: err}
		if err == nil {
			v.n = t.results[i]
		}
		r.answers <- v
	}
}

// next reports whether it has taken another batch.
func (t *flusher) next() (more bool) {
	f, c := t.batcher, t.queue
	if c == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(c.pending) > 0 && f.store.life.Err() == nil && (c.calls <= mostCalls || time.Since(t.began) < slowCall) {
		t.takeLocked()
		return true
	}
	if c.calls--; c.calls == 0 && f.store.cluster { // other stores have one queue
		delete(f.queues, t.route)
	}
	return false
}

// send sends the batch in one call.
func (t *flusher) send() (err error) {
	t.fill(t.requests)
	s := t.batcher.store
	t.results, err = evalInts(s.life, s.conn, t.requests[0].batcher.script, t.keys, t.args, t.results[:0])
	return err
}

// parts divides the batch by slot and script. It returns nil if the store is not a cluster.
func (t *flusher) parts() (parts [][]*request) {
	if !t.batcher.store.cluster || t.queue == nil {
		return nil
	}
	slices.SortStableFunc(t.requests, func(a, b *request) int { return int(a.slot) - int(b.slot) })
	for rest := t.requests; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(r *request) bool { return r.slot != rest[0].slot || r.batcher != rest[0].batcher })
		if n < 0 {
			n = len(rest)
		}
		parts, rest = append(parts, rest[:n]), rest[n:]
	}
	return parts
}

// sendParts sends a call for each part, and those for one node in one write.
func (t *flusher) sendParts(parts [][]*request) {
	for _, part := range parts {
		k, a := len(t.keys), len(t.args)
		t.fill(part)
		_, sha := part[0].batcher.script.Source()
		t.calls = append(t.calls, Call{part[0].slot, sha, t.keys[k:], t.args[a:]})
	}
	s := t.batcher.store
	send := func(n *node, some []Call) ([]Reply, error) { return n.EvalEach(s.life, some), nil }
	s.evalTogether(t.calls, send, func(i int) { t.sendAlone(parts[i]) }, func(i int, r Reply) {
		if t.results = t.results[:0]; r.Err == nil {
			t.results, r.Err = appendInts(t.results, r.Value)
		}
		t.answer(parts[i], r.Err)
	})
}

// sendAlone sends one part in a call of its own.
func (t *flusher) sendAlone(requests []*request) {
	other := t.batcher.newFlusher()
	other.requests = append(other.requests, requests...)
	t.batcher.store.workers.run(other)
}

// fill adds the keys and arguments of a part.
func (t *flusher) fill(requests []*request) {
	f := requests[0].batcher
	t.args = append(t.args, f.once...)
	for _, r := range requests {
		t.keys = f.store.keys.Append(t.keys, f.script.EachKeys, r.name, r.id)
		t.args = f.add(t.args, r)
	}
}

// clear empties the batch.
func (t *flusher) clear() {
	clear(t.requests)
	clear(t.keys)
	clear(t.args)
	clear(t.calls)
	t.requests, t.keys, t.args, t.calls = t.requests[:0], t.keys[:0], t.args[:0], t.calls[:0]
}
