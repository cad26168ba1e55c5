package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/wire"
)

// A group is one acquisition of several names: all of them in one step of the store, or none.
// Each name has an attempt, with a lease ID of its own.
type group struct {
	r   *door.Request
	all []*Attempt // in the order of the request
}

// serveAll answers POST /v1/leases with several names.
func (d *Store) serveAll(w http.ResponseWriter, r *door.Request, want wire.LeaseRequest) error {
	g, err := d.group(r, want)
	if err != nil {
		return err
	}
	ctx, cancel := r.Budgeted()
	defer cancel()
	grants, err := g.take(ctx)
	if err == nil && !g.all[0].keyed && r.Context().Err() != nil { // the client is gone
		err = ask.ContextError(r.Context())
	}
	g.settle(err)
	if err != nil {
		return err
	}
	status, v := http.StatusCreated, wire.Leases{}
	for i, a := range g.all {
		status = min(status, grants[i].Status()) // 200 if one of them was there before
		v.Leases = append(v.Leases, a.answer(grants[i]))
	}
	return door.Write(w, status, v)
}

// group checks all that can be checked without the store.
func (d *Store) group(r *door.Request, want wire.LeaseRequest) (*group, error) {
	names := want.Names
	switch {
	case want.Name != "":
		return nil, door.Invalid("the body has names, and a name beside them: want one or the other")
	case len(names) == 0 || len(names) > holdfast.MaxNames:
		return nil, door.Invalid(fmt.Sprintf("names: there are %d, want 1 to %d", len(names), holdfast.MaxNames))
	case want.WaitMS != 0:
		return nil, door.Invalid("wait_ms: a request for several names does not wait: leave it out, and ask again after a refusal")
	}
	sorted := slices.Sorted(slices.Values(names))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return nil, door.Invalid(fmt.Sprintf("names: %q is there twice", sorted[i]))
		}
	}
	g := &group{r: r}
	for _, name := range names {
		want.Name = name
		a, err := d.Checked(r, want)
		if err != nil {
			return nil, err
		}
		g.all = append(g.all, a)
	}
	return g, g.admit()
}

// admit does for all names what attempt.admit does for one.
func (g *group) admit() error {
	g.r.BodyDone()
	for _, a := range g.all {
		if err := g.r.Need(caller.Acquire, a.Req.Name); err != nil {
			return err
		}
	}
	if g.r.House.Features.AllAcquirer == nil {
		return fmt.Errorf("several names at once are %w", driver.ErrUnsupported)
	}
	var keys []string
	for _, a := range g.all {
		if err := a.identify(ForLock); err != nil {
			return err
		}
		keys = append(keys, a.counted())
	}
	return g.r.House.Limits.Leases(g.r.Caller, g.all[0].Req.TTL, keys...)
}

// take requests all locks, and returns the grants in the order of the request.
func (g *group) take(ctx context.Context) ([]Grant, error) {
	began := time.Now()
	for _, a := range g.all {
		a.began = began
	}
	if g.all[0].keyed { // AcquireAll does not report whether the store knows the lease IDs
		if err := g.each(func(i int) error { return g.all[i].meet(ctx) }); err != nil {
			return nil, err
		}
		for _, a := range g.all {
			a.unseen = !a.seen.there
		}
	}
	reply, sent, err := g.send(ctx)
	a := g.all[min(reply.Refused, len(g.all)-1)] // the one that a refusal is about
	switch {
	case err != nil:
		return nil, a.Failed(err)
	case reply.Outcome == driver.Granted:
		return g.granted(ctx, reply.Tokens, sent)
	case reply.Outcome == driver.Held:
		a.Blocker = reply.Blocker
		return nil, a.held()
	}
	return nil, a.refused(driver.AcquireReply{Outcome: reply.Outcome})
}

// send sends the request until the store answers, as Attempt.send does. INVARIANT I6:
// each copy has the same lease IDs.
func (g *group) send(ctx context.Context) (reply driver.AllReply, sent time.Time, err error) {
	reqs := make([]driver.AcquireRequest, len(g.all))
	for i, a := range g.all {
		reqs[i] = a.Req
	}
	f := ask.Until(ctx, RequestTimeout, func(ctx context.Context) (err error) {
		sent = time.Now() // INVARIANT I3: before the answered copy is sent
		reply, err = g.r.House.Features.AllAcquirer.AcquireAll(ctx, reqs)
		for _, a := range g.all {
			a.uncertain = a.uncertain || err != nil && !driver.Definite(err)
		}
		return err
	})
	return reply, sent, f.Effective()
}

// granted describes the leases that were granted.
func (g *group) granted(ctx context.Context, tokens []uint64, sent time.Time) ([]Grant, error) {
	grants := make([]Grant, len(g.all))
	err := g.each(func(i int) (err error) {
		grants[i], err = g.all[i].recognise(ctx, Grant{Token: tokens[i], Sent: sent})
		return err
	})
	return grants, err
}

// each calls f for the index of each attempt, some at a time, and returns the error of the
// first that has one.
func (g *group) each(f func(i int) error) error {
	errs := make([]error, len(g.all))
	if fault := g.r.Some(len(g.all), door.AtOnce, func(i int) { errs[i] = f(i) }); fault != nil {
		return fault
	}
	return cmp.Or(errs...)
}

// settle cancels the leases of a client without a key, if the outcome is unknown. Otherwise it
// updates the counts of the limits.
func (g *group) settle(err error) {
	there := slices.ContainsFunc(g.all, func(a *Attempt) bool { return a.seen.there })
	var left []*Attempt
	for _, a := range g.all {
		switch {
		case err == nil:
			g.r.House.Limits.Renewed(g.r.Caller, a.counted(), a.Req.TTL)
		case !a.keyed && (a.uncertain || errors.Is(err, context.Canceled)):
			left = append(left, a)
		case Definite(err) && !there:
			g.r.House.Limits.Ended(g.r.Caller, a.counted())
		}
	}
	abandon(left...)
}
