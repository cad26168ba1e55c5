package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// onceRetention is longer than a run.
const onceRetention = time.Hour

var errWork = errors.New("the work failed")

// A onceBook records the work under one do-once key.
type onceBook struct {
	effects map[uint64]bool // tokens of the runs whose work was finished
	done    uint64          // token of the run that was reported as done
	doneAt  time.Time
}

// once does do-once work.
func (w *worker) once() {
	key := onceKey(w.rand.IntN(onceKeys))
	o := &holdfast.OnceOptions{TTL: w.plan.ttl, Retention: onceRetention, Await: holdfast.Forever * time.Duration(w.rand.IntN(2))}
	fails, blind := w.rand.Float64() < 0.4, w.rand.Float64() < 0.2
	ctx, cancel := context.WithTimeout(w.final, between(w.rand, 100*time.Millisecond, 5*time.Second))
	defer cancel()
	result, err := w.client.Once(ctx, key, o, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
		w.holds(w.name, w.host, l)
		w.onceBegins(key, l)
		if blind {
			time.Sleep(min(w.plan.ttl, 2*time.Second)) // like a stopped process
		}
		select {
		case <-time.After(between(w.rand, 0, 300*time.Millisecond)):
		case <-ctx.Done():
			if !blind {
				return nil, context.Cause(ctx)
			}
		}
		if fails {
			return nil, errWork
		}
		w.onceWorked(key, l)
		return fmt.Append(nil, l.Token()), nil
	})
	w.note("%s: once %s: %q, replayed %v, %v", w.name, key, result.Value, result.Replayed, err)
	if err == nil {
		w.onceDone(w.name, key, result)
	}
}

func (h *history) onceBookLocked(key string) *onceBook {
	b := h.onces[key]
	if b == nil {
		b = &onceBook{effects: map[uint64]bool{}}
		h.onces[key] = b
	}
	return b
}

// onceBegins checks that finished work does not begin again.
func (h *history) onceBegins(key string, l *holdfast.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts["once runs"]++
	if b := h.onceBookLocked(key); b.done != 0 && h.tainted.IsZero() {
		h.violateLocked("%s is done again under token %d: it was done with token %d at %v", key, l.Token(), b.done, b.doneAt.Sub(h.began))
	}
}

func (h *history) onceWorked(key string, l *holdfast.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onceBookLocked(key).effects[l.Token()] = true
}

// onceDone checks a result: it must come from a run, and no other run may have a result.
func (h *history) onceDone(who, key string, r holdfast.OnceResult) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.onceBookLocked(key)
	switch {
	case string(r.Value) != fmt.Sprint(r.Token) || !b.effects[r.Token]:
		h.violateLocked("%s: the result %q of %s comes from no run, token %d", who, r.Value, key, r.Token)
	case b.done != 0 && b.done != r.Token && h.tainted.IsZero():
		h.violateLocked("%s: %s was done with token %d and with token %d", who, key, b.done, r.Token)
	}
	if b.done == 0 {
		b.done, b.doneAt = r.Token, time.Now()
	}
}
