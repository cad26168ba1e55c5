package leasedoor

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/oncehttp"
	"github.com/holdfast-locks/holdfast/wire"
)

// release answers POST /v1/leases/release. It leaves a tombstone, so that a copy of the
// request for the lease, which may still be under way, is granted nothing (INVARIANT I5).
func (d *leases) release(w http.ResponseWriter, r *door.Request) error {
	var body wire.LeaseRefs
	if err := r.Read(&body); err != nil {
		return err
	}
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	if body.LeaseID == "" && body.Leases == nil && r.Header.Get(oncehttp.Header) != "" {
		return d.byKey(ctx, w, r, body.Name)
	}
	refs, one, err := refsOf(r, body, noTTL)
	if err != nil {
		return err
	}
	results := make([]result, len(refs))
	err = r.Each(len(refs), func(i int) { results[i].err = d.end(ctx, r, refs[i].Name, driver.LeaseID(refs[i].LeaseID)) })
	if err != nil {
		return err
	}
	return answerRefs(w, refs, one, results, done)
}

// end gives a lease back, and its place if it has one.
func (d *leases) end(ctx context.Context, r *door.Request, name string, id driver.LeaseID) error {
	keep, err := d.keepFor(ctx, name, id)
	if err == nil {
		err = d.cancel(ctx, driver.ReleaseRequest{Name: name, LeaseID: id, KeepFor: keep, Cancel: true})
	}
	if err == nil || errors.Is(err, driver.ErrLost) {
		d.house.Limits.Ended(r.Caller, id)
		d.holds.end(id, &ending{event: "released"})
	}
	return d.about(ctx, "release", name, id, err)
}

// cancel sends a release until the store has answered it. A lease that is not there any
// more after a copy without an answer was released by that.
func (d *leases) cancel(ctx context.Context, req driver.ReleaseRequest) error {
	doubt := false
	f := ask.Until(ctx, requestTimeout, func(ctx context.Context) error {
		err := d.house.Engine.Release(ctx, req)
		doubt = doubt || err != nil && !driver.Definite(err)
		return err
	})
	if f.Lost() && doubt {
		return nil
	}
	return f.Effective()
}

// byKey releases what may be held under the Idempotency-Key of a request, for callers whose
// request for a lease was not answered, or has a place in the queue, so that they do not
// know a lease ID. There need not be a lease: what matters is the tombstone.
func (d *leases) byKey(ctx context.Context, w http.ResponseWriter, r *door.Request, name string) error {
	if err := driver.CheckName(name); err != nil {
		return door.Invalid(err.Error())
	}
	if err := r.Need(caller.Acquire, name); err != nil {
		return err
	}
	key, err := keyOf(r)
	if err != nil {
		return err
	}
	id, err := d.leaseID(ctx, r, name, key, forLock)
	if err != nil {
		return err
	}
	for _, id := range []driver.LeaseID{withMinHold(id, false), withMinHold(id, true)} {
		if err := d.end(ctx, r, name, id); err != nil && !errors.Is(err, driver.ErrLost) {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// A name that is to stay closed for some time is so by a label of the lease's holder, which
// any server can read when the lease is released, however the server that granted it has
// fared. So that other leases need not be looked at, the last bit of the lease ID says
// whether there is such a label.
const minHoldLabel = "holdfast/min_hold_ms"

// withMinHold returns id with the bit set, or not.
func withMinHold(id driver.LeaseID, set bool) driver.LeaseID {
	last, _ := strconv.ParseUint(string(id[len(id)-1:]), 16, 8) // one of our own lease IDs
	if last &^= 1; set {
		last |= 1
	}
	return id[:len(id)-1] + driver.LeaseID(strconv.FormatUint(last, 16))
}

// keepFor returns for how long a name is to stay closed after the release of a lease.
func (d *leases) keepFor(ctx context.Context, name string, id driver.LeaseID) (time.Duration, error) {
	if withMinHold(id, false) == id {
		return 0, nil
	}
	ctx, cancel := ask.Limit(ctx, requestTimeout)
	defer cancel()
	lock, err := d.house.Engine.Inspect(ctx, name)
	if err != nil {
		return 0, ask.Harmless(ctx, err)
	}
	for _, h := range lock.Holders {
		if id.Is(h.LeaseID) && !h.Released {
			n, _ := strconv.ParseInt(h.Holder.Labels[minHoldLabel], 10, 64) // 0 if others have set it to something else
			return max(0, ms(n)-h.Since), nil
		}
	}
	return 0, nil
}
