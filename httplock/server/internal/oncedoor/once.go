package oncedoor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/lease"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/oncerecord"
	"github.com/holdfast-locks/holdfast/internal/view"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	defaultRetention = 24 * time.Hour
	maxFingerprint   = 256 // bytes

	// onceBody is the longest body with a result: 1 MiB, as base64 or in JSON with the most
	// escapes.
	maxOnceResult = 1 << 20
	onceBody      = 6*maxOnceResult + 4096
)

// onceBegin answers POST /v1/once/{key} with a lease for the work, or with the result if the
// work is done, or with a refusal if another client does it. The lease ID follows from the
// Idempotency-Key, so that a repeat continues the same run.
func (d *desk) onceBegin(ctx context.Context, w http.ResponseWriter, r *door.Request, key string) error {
	a, err := d.beginOnce(ctx, r, key)
	if err == nil {
		err = a.Serve(w)
	}
	if done, ok := errors.AsType[*lease.DoneError](err); ok {
		return door.Write(w, http.StatusOK, onceDone(key, done.Header.Token, done.Value))
	}
	return err
}

// beginOnce returns the attempt to acquire do-once work.
func (d *desk) beginOnce(ctx context.Context, r *door.Request, key string) (*lease.Attempt, error) {
	var want wire.OnceRequest
	if err := r.Read(&want); err != nil {
		return nil, err
	}
	if len(want.Fingerprint) > maxFingerprint || !driver.IsText(want.Fingerprint) {
		return nil, door.Invalid(fmt.Sprintf("invalid fingerprint: want up to %d bytes of UTF-8 without control characters", maxFingerprint))
	}
	a, err := d.Checked(r, wire.LeaseRequest{
		Name: key, TTLMS: want.TTLMS, ShortTTL: want.ShortTTL, WaitMS: want.WaitMS, Holder: want.Holder, Reason: want.Reason, Labels: want.Labels,
	})
	if err != nil {
		return nil, err
	}
	a.Req.Once, a.Req.Holder.Once, a.Req.Holder.Fingerprint = true, true, want.Fingerprint
	if err := driver.CheckHolder(a.Req.Holder); err != nil {
		return nil, door.Invalid(err.Error())
	}
	if d.House.Features.Recorder == nil {
		return nil, a.Failed(fmt.Errorf("do-once work is %w", driver.ErrUnsupported))
	}
	switch record, err := r.Room(ctx, key); {
	case err != nil:
		return nil, err
	case record != nil:
		return nil, a.Recorded(record)
	}
	return a, a.Admit(caller.Once, lease.ForOnce)
}

// onceDone returns a result as clients see it.
func onceDone(key string, token uint64, value []byte) wire.OnceDone {
	v := wire.OnceDone{Key: key, Token: wire.TokenOf(token)}
	switch {
	case !utf8.Valid(value): // even as JSON: package json does not check it
		v.ResultBytes = value
	case json.Valid(value):
		v.Result = value
	default:
		v.Result, _ = json.Marshal(string(value)) // a string: cannot fail
	}
	return v
}

// onceResult answers PUT /v1/once/{key}/result.
func (d *desk) onceResult(ctx context.Context, w http.ResponseWriter, r *door.Request, key string) error {
	var body wire.OnceResult
	if err := r.ReadUpTo(&body, onceBody); err != nil {
		return err
	}
	if err := checkRun(body.LeaseID); err != nil {
		return err
	}
	value := []byte(body.Result)
	if body.ResultBytes != nil {
		value = body.ResultBytes
	}
	req := driver.CompleteRequest{Name: key, LeaseID: lockinfo.LeaseID(body.LeaseID), Retention: defaultRetention}
	if body.RetentionMS != 0 {
		req.Retention = lease.MS(body.RetentionMS)
	}
	opts := holdfast.OnceOptions{Retention: req.Retention}
	switch err := opts.Check(); {
	case err != nil:
		return door.Invalid(err.Error())
	case body.ResultBytes != nil && body.Result != nil:
		return door.Invalid("the body has result and result_base64: want one of them")
	case len(value) > maxOnceResult:
		return door.Invalid(fmt.Sprintf("result: it has %d bytes, the limit is %d: store it elsewhere, and its name here", len(value), maxOnceResult))
	}
	header, err := d.headerOf(ctx, key, req.LeaseID)
	if err != nil {
		return d.About(ctx, "once", key, req.LeaseID, err)
	}
	req.Record = oncerecord.Format(header, value)
	if err := r.House.Limits.Keep(r.Caller, limit.Record(key), len(req.Record), req.Retention, true); err != nil {
		return err
	}
	// INVARIANT I6: the store knows a repeat by the lease ID.
	f := ask.Until(ctx, lease.RequestTimeout, func(ctx context.Context) error { return d.House.Features.Recorder.Complete(ctx, req) })
	if err := f.Effective(); err != nil {
		return d.About(ctx, "once", key, req.LeaseID, err)
	}
	r.House.Limits.Ended(r.Caller, limit.Lease(key, req.LeaseID))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// headerOf returns the token and the fingerprint of a run from its lease or, if that has
// ended, from the record, which this very run may have written.
func (d *desk) headerOf(ctx context.Context, key string, id lockinfo.LeaseID) (h oncerecord.Header, err error) {
	run, err := d.Holding(ctx, key, id)
	if !errors.Is(err, driver.ErrLost) {
		return oncerecord.Header{Token: run.Token, Fingerprint: run.Holder.Fingerprint}, err
	}
	f := ask.Until(ctx, lease.RequestTimeout, func(ctx context.Context) error {
		record, found, err := d.House.Features.Recorder.Recall(ctx, key)
		if err == nil && !found {
			return driver.ErrLost
		}
		h, _, _ = oncerecord.Parse(record.Data)
		return err
	})
	return h, f.Harmless()
}

// onceFail answers POST /v1/once/{key}/fail: the run has no result, and the next caller
// does the work.
func (d *desk) onceFail(ctx context.Context, w http.ResponseWriter, r *door.Request, key string) error {
	var body wire.OnceFailure
	if err := r.Read(&body); err != nil {
		return err
	}
	if err := checkRun(body.LeaseID); err != nil {
		return err
	}
	if err := d.End(ctx, r, key, lockinfo.LeaseID(body.LeaseID)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// checkRun checks the lease ID, which names a run of do-once work.
func checkRun(id string) error {
	if !lockinfo.LeaseID(id).Valid() {
		return door.Invalid("lease_id: want that of the run, 32 hexadecimal digits")
	}
	return nil
}

// recorded returns f for a store that has records.
func (d *desk) recorded(f door.NamedFunc) http.Handler {
	return d.House.ForName("key", caller.Once, func(ctx context.Context, w http.ResponseWriter, r *door.Request, key string) error {
		if d.House.Features.Recorder == nil {
			return fmt.Errorf("once %q: do-once work is %w", key, driver.ErrUnsupported)
		}
		return f(ctx, w, r, key)
	})
}

// onceStatus answers GET /v1/once/{key}.
func (d *desk) onceStatus(ctx context.Context, w http.ResponseWriter, r *door.Request, key string) error {
	records := d.House.Client.Records()
	e, err := records.Once(ctx, key)
	if err != nil {
		return err
	}
	switch e.State {
	case holdfast.OnceAbsent:
		return unknownKey(key)
	case holdfast.OnceInProgress:
		return door.Write(w, http.StatusOK, wire.OnceState{Once: view.Once(e)})
	}
	result, err := records.Result(ctx, key)
	switch {
	case err != nil: // the key may be a schedule's
		return err
	case !result.Replayed: // the result has ended meanwhile
		return unknownKey(key)
	}
	e.Token, e.Length = result.Token, len(result.Value) // a later run may have written them
	done := onceDone(key, result.Token, result.Value)
	return door.Write(w, http.StatusOK, wire.OnceState{Once: view.Once(e), Result: done.Result, ResultBytes: done.ResultBytes})
}

// onceForget answers DELETE /v1/once/{key}.
func (d *desk) onceForget(ctx context.Context, w http.ResponseWriter, r *door.Request, key string) error {
	if err := r.Act(caller.Action{Kind: "forget", Name: key}); err != nil {
		return err
	}
	found, err := d.House.Client.Records().Forget(ctx, key)
	if err != nil {
		return err
	}
	r.House.Limits.Dropped(limit.Record(key))
	if !found {
		return unknownKey(key)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func unknownKey(key string) error {
	return &door.Refusal{
		Status: http.StatusNotFound, Code: "no-result",
		Detail: fmt.Sprintf("once %q: it is not in progress, and there is no result", key),
	}
}

// onceList answers GET /v1/once. The list has no results, so the right read is enough.
func (d *desk) onceList(w http.ResponseWriter, r *door.Request) error {
	right := caller.Read
	if r.Caller.Rights.Has(caller.Once) {
		right = caller.Once
	}
	state := r.URL.Query().Get("state")
	if state != "" && !slices.Contains(states, state) {
		return door.Invalid(fmt.Sprintf("state is %q in the query: want one of %s", state, strings.Join(states, ", ")))
	}
	list := func(ctx context.Context, prefix string) iter.Seq2[holdfast.OnceRecord, error] {
		return func(yield func(holdfast.OnceRecord, error) bool) {
			for e, err := range d.House.Client.Records().List(ctx, prefix) {
				if (err != nil || state == "" || view.Once(e).State == state) && !yield(e, err) {
					return
				}
			}
		}
	}
	return door.List(w, r, right, list, func(e holdfast.OnceRecord) string { return e.Key }, view.Once,
		func(once []wire.Once, next string) any { return wire.Onces{Once: once, NextCursor: next} })
}

// states are the states of do-once work in a list.
var states = []string{"done", "in_progress", "schedule", "unknown"}
