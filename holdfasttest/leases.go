package holdfasttest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// A lease is what the kit knows of one that a client has asked for. What the library
// tells comes a little later than what the store sees.
type lease struct {
	name  string
	asked string // where in the program, as "file.go:31"; empty if nobody knows
	had   bool   // it was handed to the program
	lost  bool   // by Lose
	over  bool   // its holder has begun to give it back, or its client to cancel it
	left  bool   // for whoever adopts it

	holder driver.LeaseID // the Key of its latest holder, as events have it
}

// hearing is how long the kit may take to hear what the library tells.
const hearing = 10 * time.Millisecond

// settle is how long what a test has started may take to give its leases back when
// the test is over.
const settle = time.Second

// asked notes requests for leases. A repeat changes nothing.
func (k *Kit) asked(reqs ...driver.AcquireRequest) {
	at := caller()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, req := range reqs {
		if k.leases[req.LeaseID] == nil {
			k.leases[req.LeaseID] = &lease{name: req.Name, asked: at}
		}
	}
}

// gaveBack notes that a holder has begun to give a lease back, or a client to cancel
// what it did not get.
func (k *Kit) gaveBack(id driver.LeaseID) {
	k.mu.Lock()
	if k.leases[id] == nil {
		k.leases[id] = &lease{}
	}
	k.leases[id].over = true
	k.mu.Unlock()
	k.change()
}

// lost notes that Lose ends a lease.
func (k *Kit) lost(id driver.LeaseID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.leases[id]; l != nil {
		l.lost = true
	}
}

// library begins the names of all functions of package holdfast.
const library = "github.com/holdfast-locks/holdfast."

// caller returns where the program has called the library, or nothing where a
// goroutine began with the call. Each acquire sends its first request on the goroutine
// of its caller.
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

// observed makes the kit hear what the library tells of leases, and then whoever
// wants to hear of it.
func (k *Kit) observed(opts *holdfast.Options) *holdfast.Options {
	var o holdfast.Options
	if opts != nil {
		o = *opts
	}
	next := o.Observer
	o.Observer = func(e holdfast.Event) {
		k.hear(e)
		if next != nil {
			next(e)
		}
	}
	return &o
}

func (k *Kit) hear(e holdfast.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.leases[e.LeaseID]
	switch {
	case e.Kind == holdfast.Acquired:
		if l == nil { // adopted
			l = &lease{name: e.Name}
			k.leases[e.LeaseID] = l
		}
		l.had, l.left, l.holder = true, false, e.Key
	case e.Kind == holdfast.Left && l.holder == e.Key: // else it was adopted, by another client
		l.left = true
	}
}

// end mends the store, checks what was left, and closes the clients.
func (k *Kit) end() {
	k.t.Helper()
	k.set(func(t *trouble) { *t = trouble{} })
	for _, left := range k.left() {
		k.t.Error(left)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	k.mu.Lock()
	clients := k.clients
	k.mu.Unlock()
	for _, c := range clients {
		_ = c.Close(ctx) // what it could not clean up goes with the store
	}
}

// left returns what there is to say of each lease that was not given back.
func (k *Kit) left() (texts []string) {
	k.t.Helper()
	if len(k.open()) > 0 {
		time.Sleep(hearing)
	}
	k.await(settle, func() bool { texts = k.notGivenBack(); return len(texts) == 0 })
	return texts
}

// open returns the leases that were neither given back nor left.
func (k *Kit) open() map[driver.LeaseID]lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	leases := map[driver.LeaseID]lease{}
	for id, l := range k.leases {
		if !l.over && !l.left {
			leases[id] = *l
		}
	}
	return leases
}

func (k *Kit) notGivenBack() (texts []string) {
	k.t.Helper()
	for id, l := range k.open() {
		switch {
		case k.live(l.name, id):
			texts = append(texts, fmt.Sprintf("holdfasttest: the lease of %q was not released%s", l.name, l.from()))
		case l.had:
			texts = append(texts, fmt.Sprintf("holdfasttest: the lease of %q was lost, and not released even so%s: Release says that it was lost", l.name, l.from()))
		}
	}
	return texts
}

// from says where the lease was acquired.
func (l lease) from() string {
	if l.asked == "" {
		return ""
	}
	return ", acquired at " + l.asked
}

// live reports whether the store has that lease.
func (k *Kit) live(name string, id driver.LeaseID) bool {
	k.t.Helper()
	for _, h := range k.inspect(name).Holders {
		if h.LeaseID == id && !h.Released {
			return true
		}
	}
	return false
}
