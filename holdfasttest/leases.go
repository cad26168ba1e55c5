package holdfasttest

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A lease is what the kit knows about a lease that a client has requested. It follows the requests,
// because the library's events come too late. A lease that has ended is deleted.
type lease struct {
	name   string
	asked  string  // where the program requested it, as "file.go:31"; empty if unknown
	had    bool    // its client knows that it was granted
	by     *engine // of the client that requested it, or has adopted it last
	lost   bool    // by Lose
	over   bool    // its holder has begun to release it, or its client to cancel it
	cancel bool    // that release also cancels a request under way
	left   bool    // its client left it for another client to adopt
}

// settle is how long the goroutines of a test may take to release their leases after
// the end of the test.
const settle = time.Second

// asked notes requests of the client of e for leases. A repeat changes nothing.
func (k *Kit) asked(e *engine, reqs ...driver.AcquireRequest) {
	at := caller()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, req := range reqs {
		if k.leases[req.LeaseID] == nil {
			k.leases[req.LeaseID] = &lease{name: req.Name, asked: at, by: e}
		}
	}
}

// note calls change for a lease, if the kit knows it.
func (k *Kit) note(id lockinfo.LeaseID, change func(*lease)) {
	k.mu.Lock()
	if l := k.leases[id]; l != nil {
		change(l)
	}
	k.mu.Unlock()
	k.change()
}

// has notes that the client of e knows that its lease was granted.
func (k *Kit) has(id lockinfo.LeaseID, e *engine) {
	k.note(id, func(l *lease) { l.had, l.by, l.left = true, e, false })
}

// gaveBack notes that a holder has begun to release a lease, or a client to cancel a request
// for one.
func (k *Kit) gaveBack(id lockinfo.LeaseID, cancel bool) {
	k.note(id, func(l *lease) {
		l.over, l.cancel = true, cancel
		delete(k.leases, id)
	})
}

// library begins the names of all functions of package holdfast.
const library = "github.com/holdfast-locks/holdfast."

// caller returns where the program has called the library, or "" if a goroutine began
// with the call. Each acquire sends its first request on the goroutine of its caller.
func caller() string {
	var pcs [64]uintptr
	frames, inside := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])]), false
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.HasPrefix(f.Function, library) {
			inside = true
		} else if inside && f.Function != "runtime.goexit" {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
	return ""
}

// end mends the store, closes the clients, and reports the leases that were left.
func (k *Kit) end() {
	k.t.Helper()
	k.set(func(t *trouble) { *t = trouble{} })
	open := map[lockinfo.LeaseID]*lease{}
	k.await(settle, func() bool { return k.open(open) == 0 })
	k.mu.Lock()
	clients := k.clients
	k.mu.Unlock()
	for _, c := range clients {
		_ = c.Close() // what it could not clean up goes with the store
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, l := range open {
		if text := l.verdict(k.live(l.name, id)); text != "" {
			k.t.Errorf("holdfasttest: the lease of %q %s", l.name, text)
		}
	}
	k.output.end()
}

// open sets leases to those that were not released, and returns how many of them were not
// left for another client to adopt either.
func (k *Kit) open(leases map[lockinfo.LeaseID]*lease) (kept int) {
	k.t.Helper()
	clear(leases)
	k.mu.Lock()
	maps.Copy(leases, k.leases)
	k.mu.Unlock()
	for id, l := range leases {
		live := k.live(l.name, id)
		k.mu.Lock()
		switch {
		case !live && !l.had: // it was not granted yet
			delete(leases, id)
		case !l.left:
			kept++
		}
		k.mu.Unlock()
	}
	return kept
}

// verdict describes the program's mistake with a lease that was open when the clients were
// closed, or returns "". live reports whether the lease is live after that. Close releases the
// leases that the program held, and cancels the others. By now the kit knows which leases were
// left.
func (l *lease) verdict(live bool) string {
	switch {
	case l.over && (l.had || !l.cancel):
		return "was not released" + l.from()
	case l.over || l.left:
		return ""
	case live: // the client is the program's own, which has not closed it
		return "was not released" + l.from()
	}
	return "was lost, and not released even so" + l.from() + ": Release says that it was lost"
}

// from describes where the lease was acquired.
func (l *lease) from() string {
	if l.asked == "" {
		return ""
	}
	return ", acquired at " + l.asked
}

// live reports whether the store has that lease.
func (k *Kit) live(name string, id lockinfo.LeaseID) bool {
	k.t.Helper()
	return slices.ContainsFunc(k.inspect(name).Holders, func(h lockinfo.Holding) bool { return h.LeaseID == id && !h.Released })
}
