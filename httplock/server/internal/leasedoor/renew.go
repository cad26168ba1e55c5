package leasedoor

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// A result is the outcome for one lease.
type result struct {
	sent  time.Time // before the answered request was sent
	err   error
	token *wire.Token // of a renewed lease, if it is known
}

// renew answers POST /v1/leases/renew, even if the server drains.
func (d *leases) renew(ctx context.Context, w http.ResponseWriter, r *door.Request) error {
	refs, one, err := readRefs(r, renewedTTL)
	if err != nil {
		return err
	}
	results, err := d.extend(ctx, r, refs, func(ref wire.LeaseRef, delay time.Duration) time.Duration { return lease.MS(ref.TTLMS) + delay })
	if err != nil {
		return err
	}
	for i, ref := range refs {
		if results[i].err == nil {
			r.House.Limits.Renewed(r.Caller, limit.Lease(ref.Name, lockinfo.LeaseID(ref.LeaseID)), lease.MS(ref.TTLMS))
		}
	}
	if err := d.tokensOf(ctx, r, refs, results); err != nil {
		return err
	}
	if one && results[0].err == nil {
		ref := refs[0]
		return door.Write(w, http.StatusOK, wire.Renewed{
			Name: ref.Name, TTLMS: ref.TTLMS, ExpiresInMS: lease.Left(lease.MS(ref.TTLMS), results[0].sent), Token: results[0].token,
		})
	}
	return answerRefs(w, r, refs, one, results, func(ref wire.LeaseRef, res result, v *wire.LeaseResult) {
		v.Status, v.TTLMS, v.Token = http.StatusOK, ref.TTLMS, res.token
		v.ExpiresInMS = new(lease.Left(lease.MS(ref.TTLMS), res.sent))
	})
}

// check answers POST /v1/leases/check. It extends by the shortest TTL, which hardly lengthens
// a lease.
func (d *leases) check(ctx context.Context, w http.ResponseWriter, r *door.Request) error {
	refs, one, err := readRefs(r, noTTL)
	if err != nil {
		return err
	}
	results, err := d.extend(ctx, r, refs, func(wire.LeaseRef, time.Duration) time.Duration { return holdfast.MinTTL })
	if err != nil {
		return err
	}
	return answerRefs(w, r, refs, one, results, done)
}

// done fills in the result of a lease without further fields.
func done(_ wire.LeaseRef, _ result, v *wire.LeaseResult) { v.Status = http.StatusNoContent }

// answerRefs answers a request about leases. well fills in the result of a success.
func answerRefs(w http.ResponseWriter, r *door.Request, refs []wire.LeaseRef, one bool, results []result, well func(wire.LeaseRef, result, *wire.LeaseResult)) error {
	if one {
		if results[0].err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		return results[0].err
	}
	all := wire.LeaseResults{Leases: make([]wire.LeaseResult, len(refs))}
	for i, ref := range refs {
		v := &all.Leases[i]
		if v.Name, v.LeaseID = ref.Name, ref.LeaseID; results[i].err == nil {
			well(ref, results[i], v)
			continue
		}
		refusal := door.RefusalOf(r.Told(results[i].err))
		v.Status, v.Code, v.Detail = refusal.Status, refusal.Code, refusal.Detail
		var p wire.Problem
		if refusal.More != nil {
			refusal.More(&p)
		}
		v.Author, v.Reason = p.Author, p.Reason
	}
	return door.Write(w, http.StatusOK, all)
}

// readRefs reads the leases of a request, and whether it names just one; see refsOf.
func readRefs(r *door.Request, more func(*wire.LeaseRef) error) ([]wire.LeaseRef, bool, error) {
	var body wire.LeaseRefs
	if err := r.Read(&body); err != nil {
		return nil, false, err
	}
	return refsOf(r, body, more)
}

// refsOf checks the leases of a request: if one is invalid, nothing is done about any. more
// checks the other fields of each.
func refsOf(r *door.Request, body wire.LeaseRefs, more func(*wire.LeaseRef) error) (refs []wire.LeaseRef, one bool, err error) {
	refs, one = body.Leases, body.Leases == nil
	switch {
	case one:
		refs = []wire.LeaseRef{body.LeaseRef}
	case body.LeaseRef != wire.LeaseRef{}:
		return nil, false, door.Invalid("the body has leases, and fields of one beside them: want one or the other")
	case len(refs) == 0 || len(refs) > driver.MaxBatch:
		return nil, false, door.Invalid(fmt.Sprintf("leases: there are %d, want 1 to %d", len(refs), driver.MaxBatch))
	}
	for i := range refs {
		ref := &refs[i]
		if err := driver.CheckName(ref.Name); err != nil {
			return nil, false, door.Invalid(err.Error())
		}
		if err := mayUse(r, ref.Name); err != nil {
			return nil, false, err
		}
		if !lockinfo.LeaseID(ref.LeaseID).Valid() { // the error does not show it: it may be a real one with a typo
			return nil, false, door.Invalid(fmt.Sprintf("lease of %q: want its lease_id, 32 hexadecimal digits", ref.Name))
		}
		if ref.FencingToken > driver.MaxToken {
			return nil, false, door.Invalid(fmt.Sprintf("lease of %q: no fencing_token is %d", ref.Name, ref.FencingToken))
		}
		if err := more(ref); err != nil {
			return nil, false, err
		}
	}
	return refs, one, nil
}

// mayUse returns a refusal unless the caller may have leases of a name, for locks or for do-once
// work.
func mayUse(r *door.Request, name string) error {
	if r.Shows(caller.Once, name) {
		return nil
	}
	return r.Need(caller.Acquire, name)
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

// extend extends leases to ttl.
func (d *leases) extend(ctx context.Context, r *door.Request, refs []wire.LeaseRef, ttl func(ref wire.LeaseRef, delay time.Duration) time.Duration) ([]result, error) {
	results, delays := make([]result, len(refs)), make([]time.Duration, len(refs))
	var reqs []driver.ExtendRequest
	if err := d.delays(ctx, r, refs, delays, results); err != nil {
		return nil, err
	}
	var asked []int // the index of the lease of each request
	for i, ref := range refs {
		if results[i].err == nil {
			asked = append(asked, i)
			reqs = append(reqs, driver.ExtendRequest{Name: ref.Name, LeaseID: lockinfo.LeaseID(ref.LeaseID), TTL: ttl(ref, delays[i]), Token: ref.FencingToken})
		}
	}
	if len(reqs) > 0 {
		routes := door.Routes(d.House.Features.Router, reqs, func(req driver.ExtendRequest) string { return req.Name })
		answers, err := door.Split(ctx, r, routes, reqs, d.extendPart, failed)
		if err != nil {
			return nil, err
		}
		for i, answer := range answers {
			results[asked[i]] = answer
		}
	}
	for i, ref := range refs {
		results[i].err = d.About(ctx, "lease of", ref.Name, lockinfo.LeaseID(ref.LeaseID), results[i].err)
	}
	return results, nil
}

func failed(err error) result { return result{err: err} }
