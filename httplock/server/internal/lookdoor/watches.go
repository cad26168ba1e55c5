package lookdoor

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/places"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// How often the server looks at a name while requests wait for it to change. If the store
// writes history, an event causes a look at once, and a change without an event is seen later.
// Each watched name adds watchEach, so that a server looks 1,000 times a second at most.
const (
	watchPause = 500 * time.Millisecond
	watchHeard = 5 * time.Second
	watchLeast = 50 * time.Millisecond // between two looks at a name, whatever happens
	watchEach  = time.Millisecond
)

// watches has the names that requests wait for. All requests for a name share one goroutine,
// which ends with the last of them. INVARIANT I11.
type watches struct {
	desk  *desk
	pause time.Duration

	mu  sync.Mutex
	all map[string]*watch
}

// A watch is one name.
type watch struct {
	watches *watches
	stop    context.CancelFunc
	wake    chan struct{} // has room for one

	// watches.mu guards the rest.
	users int
	seen  sight
	next  chan struct{} // closed by the next look
}

// join begins to wait for a name. The next look at it begins soon.
func (k *watches) join(name string) (w *watch, leave func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w = k.all[name]; w == nil {
		w = &watch{watches: k, wake: make(chan struct{}, 1), next: make(chan struct{})}
		k.all[name] = w
		w.stop = k.desk.house.Go("watch", func(ctx context.Context) { w.run(ctx, name) })
	}
	w.users++
	door.Replace(w.wake, struct{}{})
	return w, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if w.users--; w.users == 0 {
			w.stop()
			delete(k.all, name)
		}
	}
}

// latest returns what was seen last, and a channel that the next look closes.
func (w *watch) latest() (sight, <-chan struct{}) {
	w.watches.mu.Lock()
	defer w.watches.mu.Unlock()
	return w.seen, w.next
}

// run looks at a name, one look after the other, until no request waits for it.
func (w *watch) run(ctx context.Context, name string) {
	pause := time.NewTimer(w.watches.pause) // join causes the first look
	defer pause.Stop()
	for {
		select {
		case <-w.wake:
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		s := w.watches.look(ctx, name)
		if ctx.Err() != nil {
			return
		}
		pause.Reset(w.show(s))
		select {
		case <-time.After(watchLeast):
		case <-ctx.Done():
			return
		}
	}
}

// show passes a look to all waiting requests, and returns when to look again.
func (w *watch) show(s sight) time.Duration {
	k := w.watches
	k.mu.Lock()
	defer k.mu.Unlock()
	w.seen = s
	close(w.next)
	w.next = make(chan struct{})
	pause := max(k.pause, time.Duration(len(k.all))*watchEach)
	for _, h := range s.lock.Holders { // the expiry of a lease has no event before a look
		if h.ExpiresInMS != nil {
			pause = min(pause, time.Duration(*h.ExpiresInMS)*time.Millisecond+places.ExpirySlack)
		}
	}
	return max(pause, watchLeast)
}

// hear causes a look at the name of each event, and at all names after a gap.
func (k *watches) hear(e lockinfo.HistoryEvent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.Kind != lockinfo.HistoryGap {
		if w := k.all[e.Name]; w != nil {
			door.Replace(w.wake, struct{}{})
		}
		return
	}
	for _, w := range k.all {
		door.Replace(w.wake, struct{}{})
	}
}

// look looks at a name, and survives a panic of the engine.
func (k *watches) look(ctx context.Context, name string) (s sight) {
	ctx, cancel := ask.Limit(ctx, lease.RequestTimeout)
	defer cancel()
	if fault := k.desk.house.Guard(ctx, "watch", func() { s = k.desk.see(ctx, name) }); fault != nil {
		s = sight{began: time.Now(), err: fault}
	}
	return s
}

// openWatches makes the watches of a door.
func (d *desk) openWatches() {
	k := &d.watches
	k.desk, k.pause, k.all = d, watchPause, map[string]*watch{}
	if historian := d.house.Features.Historian; historian != nil {
		k.pause = watchHeard
		deaf := historian.OnEvent(k.hear) // the server gets all events anyway
		d.house.OnClose(func(context.Context) error {
			deaf()
			return nil
		})
	}
}
