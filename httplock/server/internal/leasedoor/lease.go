package leasedoor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/wire"
)

// A result is what became of a lease.
type result struct {
	sent time.Time // before the request was sent that was answered
	err  error
}

// renew answers POST /v1/leases/renew. Whatever the server is about to do, leases go on.
func (d *leases) renew(w http.ResponseWriter, r *door.Request) error {
	refs, one, err := readRefs(r, func(ref *wire.LeaseRef) error {
		if ref.TTLMS == 0 {
			ref.TTLMS = defaultTTL.Milliseconds()
		}
		return checkTTL(ref.TTLMS)
	})
	if err != nil {
		return err
	}
	results, err := d.extend(r, refs, func(ref wire.LeaseRef) time.Duration { return ms(ref.TTLMS) })
	if err != nil {
		return err
	}
	for i, ref := range refs {
		if results[i].err == nil {
			r.House.Limits.Renewed(r.Caller, driver.LeaseID(ref.LeaseID), ms(ref.TTLMS))
		}
	}
	if one && results[0].err == nil {
		ref := refs[0]
		return door.Write(w, http.StatusOK, wire.Renewed{Name: ref.Name, TTLMS: ref.TTLMS, ExpiresInMS: left(ms(ref.TTLMS), results[0].sent)})
	}
	return answerRefs(w, refs, one, results, func(ref wire.LeaseRef, res result, v *wire.LeaseResult) {
		ends := left(ms(ref.TTLMS), res.sent)
		v.Status, v.TTLMS, v.ExpiresInMS = http.StatusOK, ref.TTLMS, &ends
	})
}

// check answers POST /v1/leases/check, by an Extend that lengthens nothing to speak of.
func (d *leases) check(w http.ResponseWriter, r *door.Request) error {
	refs, one, err := readRefs(r, noTTL)
	if err != nil {
		return err
	}
	results, err := d.extend(r, refs, func(wire.LeaseRef) time.Duration { return holdfast.MinTTL })
	if err != nil {
		return err
	}
	return answerRefs(w, refs, one, results, done)
}

// done says of a lease that what was asked is done.
func done(_ wire.LeaseRef, _ result, v *wire.LeaseResult) { v.Status = http.StatusNoContent }

// answerRefs answers a request about leases. well fills in what there is to say of one
// with which all is well.
func answerRefs(w http.ResponseWriter, refs []wire.LeaseRef, one bool, results []result, well func(wire.LeaseRef, result, *wire.LeaseResult)) error {
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
		refusal := door.RefusalOf(results[i].err)
		v.Status, v.Code, v.Detail = refusal.Status, refusal.Code, refusal.Detail
		var p wire.Problem
		if refusal.More != nil {
			refusal.More(&p)
		}
		v.Author, v.Reason = p.Author, p.Reason
	}
	return door.Write(w, http.StatusOK, all)
}

// readRefs reads which leases a request is about, and whether that is one; see refsOf.
func readRefs(r *door.Request, more func(*wire.LeaseRef) error) ([]wire.LeaseRef, bool, error) {
	var body wire.LeaseRefs
	if err := r.Read(&body); err != nil {
		return nil, false, err
	}
	return refsOf(r, body, more)
}

// refsOf checks which leases a request is about: if one is wrong nothing is done about any. more checks what else a request says of each.
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
		if !driver.LeaseID(ref.LeaseID).Valid() { // which is not shown: it may be one that was mistyped
			return nil, false, door.Invalid(fmt.Sprintf("lease of %q: want its lease_id, 32 hexadecimal digits", ref.Name))
		}
		if err := more(ref); err != nil {
			return nil, false, err
		}
	}
	return refs, one, nil
}

// mayUse returns a refusal unless the caller may have leases of a name, for whatever it does.
func mayUse(r *door.Request, name string) error {
	if r.Shows(caller.Once, name) {
		return nil
	}
	return r.Need(caller.Acquire, name)
}

func checkTTL(n int64) error {
	opts := holdfast.AcquireOptions{TTL: ms(n)}
	if err := opts.Check(); err != nil {
		return door.Invalid(err.Error())
	}
	return nil
}

func noTTL(ref *wire.LeaseRef) error {
	if ref.TTLMS != 0 {
		return door.Invalid("ttl_ms: only a renewal has it")
	}
	return nil
}

// extend asks for leases to last for ttl.
func (d *leases) extend(r *door.Request, refs []wire.LeaseRef, ttl func(wire.LeaseRef) time.Duration) ([]result, error) {
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return nil, err
	}
	defer cancel()
	reqs := make([]driver.ExtendRequest, len(refs))
	for i, ref := range refs {
		reqs[i] = driver.ExtendRequest{Name: ref.Name, LeaseID: driver.LeaseID(ref.LeaseID), TTL: ttl(ref)}
	}
	routes := door.Routes(d.house.Features.Router, reqs, func(req driver.ExtendRequest) string { return req.Name })
	results, err := door.Split(ctx, r, routes, reqs, d.extendPart, failed)
	if err != nil {
		return nil, err
	}
	for i, req := range reqs {
		results[i].err = d.about(ctx, "lease of", req.Name, req.LeaseID, results[i].err)
	}
	return results, nil
}

func failed(err error) result { return result{err: err} }

// about says which lease an error is about, and why the lease was lost.
func (d *leases) about(ctx context.Context, what, name string, id driver.LeaseID, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, driver.ErrLost) {
		err = d.why(ctx, name, id)
	}
	broken := (*driver.BrokenError)(nil)
	err = fmt.Errorf("%s %q: %w", what, name, err)
	if !errors.As(err, &broken) {
		return err
	}
	refusal := *door.RefusalOf(err)
	refusal.More = func(p *wire.Problem) { p.Author, p.Reason = broken.Author, broken.Reason }
	return &refusal
}

// why returns why a lease is not live, as far as the store can tell: somebody may have
// taken the lock away.
func (d *leases) why(ctx context.Context, name string, id driver.LeaseID) error {
	if d.house.Features.Breaker == nil {
		return driver.ErrLost
	}
	broken, err := d.house.Features.Breaker.Breaks(ctx, name)
	if err != nil {
		return driver.ErrLost
	}
	for _, b := range broken {
		if id.Is(b.LeaseID) {
			return b.Err()
		}
	}
	return driver.ErrLost
}
