package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// AcquireAll takes the locks of all names, or none, and returns one handle for
// their leases. It waits as Acquire does. The options hold for each lock; MaxWait
// bounds the whole.
//
// If all are free it takes them at once, where the engine can do that in one
// step. Otherwise it takes them one after the other in the order of their
// names, waiting in the queue of each, while the keep-alive holds those it has:
// so calls of AcquireAll cannot deadlock. A caller that already holds a lock
// whose name sorts after one of these can: it must not call AcquireAll if
// another caller may take the same locks in the opposite order.
//
// Without all the locks it returns an error like Acquire's, about the
// lock that it did not get, or ErrLost about a lease that it lost, as soon as that
// is known. It releases the others before it returns, or in the background if
// the store does not answer. No name, more than MaxNames, and a name
// twice are ErrInvalid.
func (c *Client) AcquireAll(ctx context.Context, names []string, opts *AcquireOptions) (*Leases, error) {
	return c.acquireAll(ctx, names, opts, true)
}

// TryAcquireAll is AcquireAll without waiting: if another holder has one of the
// locks it returns a *HeldError about that one, and takes none.
func (c *Client) TryAcquireAll(ctx context.Context, names []string, opts *AcquireOptions) (*Leases, error) {
	return c.acquireAll(ctx, names, opts, false)
}

func (c *Client) acquireAll(ctx context.Context, names []string, opts *AcquireOptions, wait bool) (leases *Leases, err error) {
	g, err := c.newAllAcquisition(ctx, names, opts, wait)
	if err != nil {
		return nil, err
	}
	c.started() // as in run
	defer c.finished()
	defer func() {
		if leases == nil { // on an error, and if OnWait has panicked or ended the goroutine
			g.giveBack(ctx)
		}
	}()
	done, err := g.atOnce(ctx, wait)
	if !done {
		err = g.oneByOne(ctx)
	}
	if err == nil {
		err = g.handOut(ctx, done)
	}
	if err == nil && c.isClosed() {
		err = opError("acquire", g.all[0].req.Name, ErrClosed)
	}
	if err != nil {
		return nil, err
	}
	return newLeases(ctx, g.leases), nil
}

// An allAcquisition is one call of AcquireAll under way.
type allAcquisition struct {
	client *Client
	opts   AcquireOptions // the caller's; while others are acquired, a lease has its own
	all    []*acquisition // in the order of their names
	leases []*Lease       // the leases acquired so far, in the same order
}

// newAllAcquisition checks the arguments. It sends nothing.
func (c *Client) newAllAcquisition(ctx context.Context, names []string, opts *AcquireOptions, wait bool) (*allAcquisition, error) {
	if len(names) == 0 || len(names) > MaxNames {
		return nil, fmt.Errorf("holdfast: acquire all: %w names: %d of them, want 1 to %d", ErrInvalid, len(names), MaxNames)
	}
	g := &allAcquisition{client: c}
	for i, name := range slices.Sorted(slices.Values(names)) {
		a := &acquisition{}
		err := c.prepare(ctx, a, name, opts, wait)
		if i > 0 && name == g.all[i-1].req.Name {
			err = fmt.Errorf("%w names: it is there twice", ErrInvalid)
		}
		if err != nil {
			return nil, opError("acquire", name, err)
		}
		g.opts = a.opts
		// While AcquireAll waits for the next lock, the caller can neither extend the leases
		// that are acquired already nor call Heartbeat.
		a.opts.KeepAlive, a.opts.StallAfter = KeepAliveOn, 0
		g.all = append(g.all, a)
	}
	return g, nil
}

// atOnce tries to take all locks in one step. If it returns done == false, the caller must take
// the rest one by one.
func (g *allAcquisition) atOnce(ctx context.Context, wait bool) (done bool, err error) {
	engine := g.client.features.AllAcquirer
	if engine == nil || len(g.all) == 1 || g.opts.Replicas > 0 {
		return false, nil
	}
	if g.client.isClosed() {
		return true, g.refused(0, ErrClosed)
	}
	reqs := make([]driver.AcquireRequest, len(g.all))
	for i, a := range g.all {
		reqs[i] = a.req
	}
	ctx, cancel := g.client.requestContext(ctx)
	defer cancel()
	// INVARIANT I3: the clock starts before the first byte is written.
	sent := g.client.now()
	reply, err := engine.AcquireAll(ctx, reqs)
	switch {
	case errors.Is(err, ErrUnsupported):
		return false, nil
	case err != nil:
		// If the store has granted the leases, oneByOne gets them by repeating the
		// requests, or giveBack cancels them.
		for _, a := range g.all {
			a.uncertain, a.wait.Tried = a.uncertain || !driver.Definite(err), sent.Mono
		}
		if !wait || driver.Permanent(err) || g.all[0].waitOver() {
			return true, g.refused(0, ask.Harmless(ctx, err))
		}
		return false, nil
	case reply.Outcome == driver.Granted:
		return g.granted(sent, reply.Tokens), nil
	}
	if wait {
		return false, nil
	}
	a := g.all[reply.Refused]
	a.blocked(reply.Blocker, time.Now())
	return true, g.refused(reply.Refused, a.heldError(0))
}

// refused returns why lock number i was not acquired.
func (g *allAcquisition) refused(i int, err error) error {
	g.all[i].tellRefused(err)
	return opError("acquire", g.all[i].req.Name, err)
}

// granted makes the leases. It returns false if the reply came too late for one, or if this
// client has a later lease of that name: oneByOne then repeats the requests for that name and
// the names after it.
func (g *allAcquisition) granted(sent instant, tokens []uint64) bool {
	now := g.client.now()
	for i, a := range g.all {
		t, ok := a.newTerm().granted(sent, now, g.client.leases.pace())
		if ok {
			l, ahead := g.client.newLease(a, tokens[i], 0, t)
			if ahead == nil {
				g.add(l)
				a.tellAcquired(l)
				continue
			}
		}
		for _, a := range g.all[i:] {
			a.uncertain = true
		}
		return false
	}
	return true
}

// oneByOne takes the locks that are missing, in the order of their names. It stops if a lease
// that was acquired is lost.
func (g *allAcquisition) oneByOne(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := func(l *Lease) (stop func() bool) {
		return context.AfterFunc(l.Context(), func() {
			if lost := l.lostBefore(); lost != nil { // nil if Close has released it
				cancel(lost)
			}
		})
	}
	for _, l := range g.leases {
		defer watch(l)()
	}
	for _, a := range g.all[len(g.leases):] {
		l, err := a.run(ctx)
		if err != nil {
			if lost := g.lost(); lost != nil {
				return lost
			}
			return opError("acquire", a.req.Name, err)
		}
		g.add(l)
		defer watch(l)()
	}
	return nil
}

// lost returns why the first lost lease was lost, or nil if none is lost.
func (g *allAcquisition) lost() error {
	for _, l := range g.leases {
		l.Valid() // ends the lease if its deadline has passed
		if lost := l.lostBefore(); lost != nil {
			return opError("acquire", l.name, lost)
		}
	}
	return nil
}

// add notes a lease, and makes it the outer lease of the next acquisition.
func (g *allAcquisition) add(l *Lease) {
	g.leases = append(g.leases, l)
	if n := len(g.leases); n < len(g.all) {
		g.all[n].outer = l
	}
}

// handOut gives the leases the caller's options. If the leases were acquired one by one, and
// keep-alive is off or WholeTTL is set, it extends each to its whole TTL.
func (g *allAcquisition) handOut(ctx context.Context, atOnce bool) error {
	if !atOnce && (g.opts.KeepAlive == KeepAliveOff || g.opts.WholeTTL) {
		if err := extendAll(ctx, g.leases, g.opts.TTL); err != nil {
			return err
		}
	}
	if err := g.lost(); err != nil {
		return err
	}
	for _, l := range g.leases {
		l.handOut(g.opts)
	}
	return nil
}

// giveBack removes from the store all that a failed acquisition has left there.
func (g *allAcquisition) giveBack(ctx context.Context) {
	_ = releaseAll(ctx, g.leases) // if it fails, the client repeats it in the background
	for _, a := range g.all[len(g.leases):] {
		a.abandon()
	}
}
