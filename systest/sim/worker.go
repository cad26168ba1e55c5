package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
)

// A worker of one client acquires locks, works under them and releases them.
type worker struct {
	name   string
	host   *host
	plan   *plan
	client *holdfast.Client
	rand   *rand.Rand
	*history
	gate *fence.Gate

	peers    []peer          // other hosts
	stop     <-chan struct{} // closed when no new work may begin
	final    context.Context // ends when every waiter must have been served
	minToken map[string]uint64
}

// run works until stop, or until its host dies.
func (w *worker) run() {
	for {
		select {
		case <-w.stop:
			return
		case <-w.final.Done():
			return
		case <-time.After(between(w.rand, 0, 400*time.Millisecond)):
		}
		w.count("calls")
		switch which := w.rand.IntN(12); {
		case which < 2:
			w.once()
		case which < 4:
			w.do()
		case which == 4 && w.plan.modes[1] == holdfast.Exclusive:
			w.acquireAll()
		default:
			w.acquire(which)
		}
	}
}

// options returns random options of a request.
func (w *worker) options() (string, *holdfast.AcquireOptions) {
	i := w.rand.IntN(len(names))
	o := &holdfast.AcquireOptions{TTL: w.plan.ttl, MinToken: w.minToken[names[i]]}
	if w.rand.Float64() < 0.2 {
		o.TTL = pick(w.rand, 100*time.Millisecond, 700*time.Millisecond, 2*time.Second)
	}
	if w.rand.Float64() < 0.2 {
		o.KeepAlive = holdfast.KeepAliveOff
	}
	short := between(w.rand, 10*time.Millisecond, 500*time.Millisecond)
	switch w.rand.IntN(20) {
	case 0:
		o.MinHold = short
	case 1:
		o.MaxHold = o.TTL + short
	case 2:
		o.LockDelay = short
	case 3:
		o.StallAfter = o.TTL + short // without Heartbeat: the lease is lost
	}
	switch mode := w.plan.modes[i]; {
	case mode.Limit() != 0:
		o.Mode = holdfast.Permits(1+w.rand.IntN(2), mode.Limit())
	case w.rand.Float64() < 0.4:
		o.Mode = mode
	}
	return names[i], o
}

// acquire acquires a lock with or without waiting, and works.
func (w *worker) acquire(which int) {
	name, o := w.options()
	ctx, cancel := w.final, func() {}
	patience := between(w.rand, 5*time.Millisecond, 3*time.Second)
	var l *holdfast.Lease
	var err error
	switch {
	case which < 6:
		l, err = w.client.TryAcquire(ctx, name, o)
	case which < 8:
		o.MaxWait = patience
		l, err = w.wait(ctx, name, o)
	case which < 10:
		ctx, cancel = context.WithTimeout(ctx, patience)
		l, err = w.wait(ctx, name, o)
	default:
		l, err = w.wait(ctx, name, o)
	}
	cancel()
	if err != nil {
		w.refused(name, err)
		return
	}
	w.begins(l)
	w.work(context.Background(), l)
	if w.rand.Float64() < 0.15 {
		l = w.handOn(l)
	}
	err = l.Release(context.Background())
	w.note("%s: released %s, lease %s: %v", w.name, name, short(l.ID()), err)
}

// acquireAll acquires both locks at once.
func (w *worker) acquireAll() {
	ctx, cancel := context.WithTimeout(w.final, between(w.rand, 50*time.Millisecond, 3*time.Second))
	defer cancel()
	all, err := w.client.AcquireAll(ctx, names[:], &holdfast.AcquireOptions{TTL: w.plan.ttl})
	if err != nil {
		w.note("%s: not all leases: %v", w.name, err)
		return
	}
	for _, name := range names {
		w.holds(w.name, w.host, all.Lease(name))
	}
	w.work(context.Background(), all.Lease(names[w.rand.IntN(len(names))]))
	err = all.Release(context.Background())
	w.note("%s: released all: %v", w.name, err)
}

// wait is Acquire, and records the wait in the history.
func (w *worker) wait(ctx context.Context, name string, o *holdfast.AcquireOptions) (*holdfast.Lease, error) {
	w.note("%s: acquires %s, %v, TTL %v", w.name, name, o.Mode, o.TTL)
	w.waits(name, 1)
	defer w.waits(name, -1)
	return w.client.Acquire(ctx, name, o)
}

// refused records that a call ended without a lease.
func (w *worker) refused(name string, err error) {
	w.note("%s: no lease of %s: %v", w.name, name, err)
	if _, alive := w.host.waits(); alive && w.final.Err() != nil {
		w.violate("%s: waited for %s until the end: %v", w.name, name, err)
	}
}

func (w *worker) begins(l *holdfast.Lease) {
	w.holds(w.name, w.host, l)
	if min := w.minToken[l.Name()]; l.Token() <= min {
		w.violate("%s: token %d of %s is not above MinToken %d", w.name, l.Token(), l.Name(), min)
	}
	delete(w.minToken, l.Name())
}

// do works under Client.Do.
func (w *worker) do() {
	name, o := w.options()
	ctx, cancel := context.WithTimeout(w.final, between(w.rand, 50*time.Millisecond, 5*time.Second))
	defer cancel()
	err := w.client.Do(ctx, name, o, func(ctx context.Context, l *holdfast.Lease) error {
		w.begins(l)
		w.work(ctx, l)
		return nil
	})
	if err != nil {
		w.note("%s: do %s: %v", w.name, name, err)
	}
}

// work does the work of a holder. Sometimes it ignores the end of the lease, like a stopped
// process, and writes late.
func (w *worker) work(ctx context.Context, l *holdfast.Lease) {
	span := between(w.rand, 0, min(w.plan.ttl*3/2, 1500*time.Millisecond))
	if w.rand.Float64() < 0.3 {
		span /= 20
	}
	blind := w.rand.Float64() < 0.1
	w.write(l)
	switch w.rand.IntN(6) {
	case 0:
		err := l.Extend(ctx, w.plan.ttl)
		w.note("%s: extended lease %s: %v", w.name, short(l.ID()), err)
	case 1:
		if l.Mode() == holdfast.Exclusive && w.plan.modes[0] == holdfast.Shared && l.Name() == names[0] {
			w.shares(l)
			err := l.Downgrade(ctx)
			w.note("%s: downgraded lease %s: %v", w.name, short(l.ID()), err)
		}
	}
	if blind {
		time.Sleep(min(span+w.plan.ttl, 3*time.Second))
		w.write(l)
		return
	}
	select {
	case <-time.After(span):
		w.write(l)
	case <-l.Context().Done():
	case <-ctx.Done():
	}
}

// write writes to the resource that the name protects.
func (w *worker) write(l *holdfast.Lease) {
	if l.Mode() != holdfast.Exclusive {
		return
	}
	valid := l.Valid()
	err := w.gate.Write(l.Name(), l, func() error {
		w.accepts(l)
		return nil
	})
	w.note("%s: writes with token %d of %s, valid %v: %v", w.name, l.Token(), l.Name(), valid, err)
	var stale *fence.StaleError
	if !errors.As(err, &stale) {
		return
	}
	w.count("stale writes")
	if valid && !w.isTainted() {
		w.violate("%s: the resource refused token %d of a valid lease of %s: %v", w.name, l.Token(), l.Name(), err)
	}
	w.minToken[l.Name()] = stale.Current
}

// accepts checks a write that a resource accepted.
func (h *history) accepts(l *holdfast.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts["writes"]++
	log := h.accepted[l.Name()]
	if n := len(log); n > 0 {
		last := log[n-1]
		if l.Token() < last.token || l.Token() == last.token && l.ID() != last.id {
			h.violateLocked("the resource %s accepted token %d, lease %s, after %d, lease %s",
				l.Name(), l.Token(), short(l.ID()), last.token, short(last.id))
		}
	}
	h.accepted[l.Name()] = append(log, write{l.Token(), l.ID()})
}
