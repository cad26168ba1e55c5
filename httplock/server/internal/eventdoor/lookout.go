package eventdoor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

const (
	// lookStep is how often a lookout checks which names are due.
	lookStep = time.Second

	// lookPause is the shortest time between two looks at a name, and lookMost the longest.
	// A dead holder is found within the TTL and lookPause.
	lookPause = 10 * time.Second
	lookMost  = time.Minute

	// lookAgain is how soon a lookout looks again after a failure, and lookLimit how long it
	// waits for the store.
	lookAgain = 5 * time.Second
	lookLimit = 5 * time.Second

	// lookers is how many names a lookout looks at concurrently.
	lookers = 8
)

// A lookout watches the known leases. The store records the expiry of a lease at the next
// request for the name, which may never come. The server may also miss the end of a lease,
// or the store may lose the lease. So the lookout looks at each name about when its lease
// would end without a renewal, and at all names after a gap.
type lookout struct {
	house  *door.House
	found  func(lockinfo.HistoryEvent) // called for the ends that it finds
	missed func()                      // called for a lease that has ended without a trace

	mu    sync.Mutex
	names map[string]*watched
	list  time.Time               // when to list all leases; zero if no list is due
	ended map[possession]struct{} // the leases that have ended during a list; else nil
}

// A watched is a name with known leases.
type watched struct {
	leases map[uint64]begun // by token
	due    time.Time        // for the next look
}

// A begun is a known lease.
type begun struct {
	lockinfo.HistoryEvent
	at       time.Time // of the grant
	recorded bool      // an event reported it, so the store has its history
}

type possession struct {
	name  string
	token uint64
}

// hear handles each event of the engine.
func (l *lookout) hear(e lockinfo.HistoryEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch {
	case e.Kind == lockinfo.HistoryGap:
		l.list = now
		for _, w := range l.names {
			w.due = now
		}
	case hidden(e.Name):
	case e.Kind.Begins():
		l.addLocked(e, now.Add(-e.Ago), true)
	case e.Kind.Ends():
		if l.ended != nil {
			l.ended[possession{e.Name, e.Token}] = struct{}{}
		}
		l.forgetLocked(e.Name, e.Token)
	}
}

// addLocked notes a lease, unless it is known.
func (l *lookout) addLocked(e lockinfo.HistoryEvent, at time.Time, recorded bool) {
	w := l.names[e.Name]
	if w == nil {
		w = &watched{leases: map[uint64]begun{}, due: time.Now().Add(lookPause)}
		l.names[e.Name] = w
	}
	if b, known := w.leases[e.Token]; !known || recorded && !b.recorded {
		w.leases[e.Token] = begun{e, at, recorded}
	}
}

// forgetLocked forgets a lease, and reports whether it was known.
func (l *lookout) forgetLocked(name string, token uint64) (known bool) {
	if w := l.names[name]; w != nil {
		_, known = w.leases[token]
		delete(w.leases, token)
		if len(w.leases) == 0 {
			delete(l.names, name)
		}
	}
	return known
}

// run looks until the context ends.
func (l *lookout) run(ctx context.Context) {
	tick := time.NewTicker(lookStep)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		l.listAll(ctx)
		l.lookAll(ctx, l.due())
	}
}

// due returns the names that are due.
func (l *lookout) due() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for name, w := range l.names {
		if !w.due.After(now) {
			names = append(names, name)
		}
	}
	return names
}

// lookAll looks at names, some at a time.
func (l *lookout) lookAll(ctx context.Context, names []string) {
	var wg sync.WaitGroup
	for i := range min(lookers, len(names)) {
		wg.Go(func() {
			for n := i; n < len(names) && ctx.Err() == nil; n += lookers {
				l.look(ctx, names[n])
			}
		})
	}
	wg.Wait()
}

// listAll notes the leases in the store, if a list is due: after a gap, and at the beginning,
// there may be leases that no event has reported.
func (l *lookout) listAll(ctx context.Context) {
	l.mu.Lock()
	begin := l.list
	due := l.house.Features.Lister != nil && !begin.IsZero() && !begin.After(time.Now())
	if due {
		l.ended = map[possession]struct{}{}
	}
	l.mu.Unlock()
	if !due {
		return
	}
	var err error
	for lock, failed := range l.house.Features.Lister.List(ctx, "") {
		if err = failed; err != nil {
			break
		}
		l.note(lock)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = nil
	switch {
	case err != nil:
		l.list = time.Now().Add(lookAgain)
	case l.list.Equal(begin): // there was no other gap meanwhile
		l.list = time.Time{}
	}
}

// note notes the leases of a name in a list, except leases that ended meanwhile.
func (l *lookout) note(lock lockinfo.LockState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range lock.Live() {
		if _, over := l.ended[possession{lock.Name, h.Token}]; !over && !h.Foreign() && !hidden(lock.Name) {
			e := lockinfo.HistoryEvent{Name: lock.Name, Token: h.Token, Mode: h.Mode, Holder: h.Holder}
			l.addLocked(e, time.Now().Add(-h.Since), false)
		}
	}
}

// look checks whether the known leases of a name still exist.
func (l *lookout) look(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	l.mu.Lock()
	var known map[uint64]begun
	if w := l.names[name]; w != nil {
		known = maps.Clone(w.leases)
	}
	l.mu.Unlock()
	next := lookAgain
	if lock, err := l.house.Engine.Inspect(ctx, name); err == nil {
		next = lookPause
		for _, h := range lock.Live() {
			delete(known, h.Token)
			next = max(next, min(h.ExpiresIn+lookStep, lookMost))
		}
		if len(known) > 0 && l.settle(ctx, name, known) != nil {
			next = lookAgain
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.names[name]; w != nil {
		w.due = time.Now().Add(next)
	}
}

// settle finds out how missing leases have ended. Reading the history of a name makes the
// store record its expired leases.
func (l *lookout) settle(ctx context.Context, name string, gone map[uint64]begun) error {
	events, err := l.house.Features.Historian.History(ctx, name)
	if err != nil {
		return err
	}
	for _, e := range events {
		if _, ours := gone[e.Token]; ours && e.Kind.Ends() {
			l.found(e)
		}
	}
	for _, token := range slices.Sorted(maps.Keys(gone)) {
		if !l.forget(name, token) {
			continue
		}
		b := gone[token]
		if !b.recorded {
			l.missed()
			continue
		}
		// The store knew the lease, and has no trace of it: it has lost data.
		e := b.HistoryEvent
		e.ID, e.Kind, e.Ago, e.Waited, e.Held = "gone."+b.ID, lockinfo.HistoryExpired, 0, 0, time.Since(b.at)
		l.found(e)
	}
	return nil
}

func (l *lookout) forget(name string, token uint64) (known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forgetLocked(name, token)
}
