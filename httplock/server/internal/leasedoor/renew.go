package leasedoor

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// A target is one lease that a request is about, and the outcome for it.
type target struct {
	wire.LeaseRef
	result
	delay time.Duration // the lock delay of the lease
	token *wire.Token   // of a renewed lease, if it is known
}

// A result is the outcome of a request to the store about one lease.
type result struct {
	sent time.Time // before the answered request was sent
	err  error
}

func (t *target) id() lockinfo.LeaseID { return lockinfo.LeaseID(t.LeaseID) }

func (t *target) ttl() time.Duration { return lease.MS(t.TTLMS) }

// targets are the leases of one request: a single lease, or a list.
type targets struct {
	all []*target
	one bool
}

// renew answers POST /v1/leases/renew, even if the server drains.
func (d *leases) renew(ctx context.Context, w http.ResponseWriter, r *door.Request, body wire.LeaseRefs) error {
	b, err := targetsOf(r, body, renewedTTL)
	if err != nil {
		return err
	}
	if err := d.extend(ctx, r, b.all, func(t *target) time.Duration { return t.ttl() + t.delay }); err != nil {
		return err
	}
	for _, t := range b.all {
		if t.err == nil {
			r.House.Limits.Renewed(r.Caller, limit.Lease(t.Name, t.id()), t.ttl())
		}
	}
	if err := d.tokensOf(ctx, r, b.all); err != nil {
		return err
	}
	if t := b.all[0]; b.one && t.err == nil {
		return door.Write(w, http.StatusOK, wire.Renewed{
			Name: t.Name, TTLMS: t.TTLMS, ExpiresInMS: lease.Left(t.ttl(), t.sent), Token: t.token,
		})
	}
	return b.answer(w, r, func(t *target, v *wire.LeaseResult) {
		v.Status, v.TTLMS, v.Token = http.StatusOK, t.TTLMS, t.token
		v.ExpiresInMS = new(lease.Left(t.ttl(), t.sent))
	})
}

// check answers POST /v1/leases/check. It extends by the shortest TTL, which hardly lengthens
// a lease.
func (d *leases) check(ctx context.Context, w http.ResponseWriter, r *door.Request, body wire.LeaseRefs) error {
	b, err := targetsOf(r, body, noTTL)
	if err != nil {
		return err
	}
	if err := d.extend(ctx, r, b.all, func(*target) time.Duration { return holdfast.MinTTL }); err != nil {
		return err
	}
	return b.answer(w, r, done)
}

// done fills in the result of a lease without further fields.
func done(_ *target, v *wire.LeaseResult) { v.Status = http.StatusNoContent }

// answer answers a request about leases. well fills in the result of a success.
func (b targets) answer(w http.ResponseWriter, r *door.Request, well func(*target, *wire.LeaseResult)) error {
	if b.one {
		if b.all[0].err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		return b.all[0].err
	}
	results := wire.LeaseResults{Leases: make([]wire.LeaseResult, len(b.all))}
	for i, t := range b.all {
		v := &results.Leases[i]
		if v.Name, v.LeaseID = t.Name, t.LeaseID; t.err == nil {
			well(t, v)
			continue
		}
		p := r.Problem(t.err)
		v.Status, v.Code, v.Detail, v.Author, v.Reason = p.Status, p.Code, p.Detail, p.Author, p.Reason
	}
	return door.Write(w, http.StatusOK, results)
}

// targetsOf checks the leases of a request: if one is invalid, nothing is done about any. more
// checks the other fields of each.
func targetsOf(r *door.Request, body wire.LeaseRefs, more func(*wire.LeaseRef) error) (b targets, err error) {
	refs := body.Leases
	switch b.one = refs == nil; {
	case b.one:
		refs = []wire.LeaseRef{body.LeaseRef}
	case body.LeaseRef != wire.LeaseRef{}:
		return b, door.Invalid("the body has leases, and fields of one beside them: want one or the other")
	case len(refs) == 0 || len(refs) > driver.MaxBatch:
		return b, door.Invalid(fmt.Sprintf("leases: there are %d, want 1 to %d", len(refs), driver.MaxBatch))
	}
	for _, ref := range refs {
		if err := checkRef(r, &ref, more); err != nil {
			return b, err
		}
		b.all = append(b.all, &target{LeaseRef: ref})
	}
	return b, nil
}

// checkRef checks one lease of a request, and the right of the caller to it.
func checkRef(r *door.Request, ref *wire.LeaseRef, more func(*wire.LeaseRef) error) error {
	if err := driver.CheckName(ref.Name); err != nil {
		return door.Invalid(err.Error())
	}
	if err := r.NeedLease(ref.Name); err != nil {
		return err
	}
	if !lockinfo.LeaseID(ref.LeaseID).Valid() { // the error does not show it: it may be a real one with a typo
		return door.Invalid(fmt.Sprintf("lease of %q: want its lease_id, 32 hexadecimal digits", ref.Name))
	}
	if ref.FencingToken > driver.MaxToken {
		return door.Invalid(fmt.Sprintf("lease of %q: no fencing_token is %d", ref.Name, ref.FencingToken))
	}
	return more(ref)
}

// renewedTTL checks the TTL of a renewal in the same way as the TTL of a new lease.
func renewedTTL(ref *wire.LeaseRef) (err error) {
	if ref.TTLMS, err = lease.TTLOf(ref.TTLMS, ref.ShortTTL); err != nil {
		return err
	}
	opts := holdfast.AcquireOptions{TTL: lease.MS(ref.TTLMS)}
	if err := opts.Check(); err != nil {
		return door.Invalid(err.Error())
	}
	return nil
}

func noTTL(ref *wire.LeaseRef) error {
	if ref.TTLMS != 0 || ref.ShortTTL {
		return door.Invalid("ttl_ms: only a renewal has it")
	}
	return nil
}
