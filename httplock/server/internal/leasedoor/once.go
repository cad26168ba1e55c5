package leasedoor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/oncerecord"
	"github.com/holdfast-locks/holdfast/wire"
	"github.com/holdfast-locks/holdfast/wire/view"
)

const (
	defaultRetention = 24 * time.Hour
	maxFingerprint   = 256 // bytes

	// onceBody is the longest body with a result: one of 1 MiB, as base64 or in JSON with
	// as many escapes as there may be.
	maxOnceResult = 1 << 20
	onceBody      = 6*maxOnceResult + 4096
)

// onceBegin answers POST /v1/once/{key}: the work is the caller's, or it is done, or
// somebody else does it. The lease ID is that of the Idempotency-Key, so that a repeat
// goes on with the same run.
func (d *leases) onceBegin(w http.ResponseWriter, r *door.Request) error {
	a, err := d.beginOnce(r)
	if err != nil {
		return err
	}
	g, err := a.waitPatiently()
	var queued *queuedError
	var done *doneError
	switch {
	case errors.As(err, &queued):
		return door.Write(w, http.StatusAccepted, queued.queued)
	case errors.As(err, &done):
		return door.Write(w, http.StatusOK, onceDone(a.req.Name, done.header.Token, done.value))
	case err != nil:
		return err
	}
	return a.granted(w, g)
}

// beginOnce is begin for do-once work.
func (d *leases) beginOnce(r *door.Request) (*attempt, error) {
	var want wire.OnceRequest
	if err := r.Read(&want); err != nil {
		return nil, err
	}
	if len(want.Fingerprint) > maxFingerprint || !driver.IsText(want.Fingerprint) {
		return nil, door.Invalid(fmt.Sprintf("invalid fingerprint: want up to %d bytes of UTF-8 without control characters", maxFingerprint))
	}
	key, err := pathName(r, "key")
	if err != nil {
		return nil, err
	}
	a := &attempt{door: d, r: r, want: wire.LeaseRequest{
		Name: key, TTLMS: want.TTLMS, WaitMS: want.WaitMS, Holder: want.Holder, Reason: want.Reason, Labels: want.Labels,
	}}
	if a.req, err = acquireRequest(r, &a.want); err != nil {
		return nil, err
	}
	a.req.Once, a.req.Holder.Once, a.req.Holder.Fingerprint = true, true, want.Fingerprint
	if err := driver.CheckHolder(a.req.Holder); err != nil {
		return nil, door.Invalid(err.Error())
	}
	if d.house.Features.Recorder == nil {
		return nil, a.failed(fmt.Errorf("do-once work is %w", driver.ErrUnsupported))
	}
	return a, a.admit(caller.Once, forOnce)
}

// A doneError is what ends the wait for do-once work: it is done.
type doneError struct {
	header oncerecord.Header
	value  []byte
}

func (e *doneError) Error() string { return "it is done" }

// recorded returns what the record of a name means for a request.
func (a *attempt) recorded(record []byte) error {
	header, value, ok := oncerecord.Parse(record)
	if !ok {
		return a.failed(fmt.Errorf("%w: what is kept under this key is not the result of do-once work: take another key", driver.ErrKindMismatch))
	}
	if err := a.otherRequest(header.Fingerprint); err != nil {
		return err
	}
	return &doneError{header, value}
}

// onceDone returns a result as callers are shown it.
func onceDone(key string, token uint64, value []byte) wire.OnceDone {
	v := wire.OnceDone{Key: key, Token: wire.TokenOf(token)}
	switch {
	case json.Valid(value):
		v.Result = value
	case utf8.Valid(value):
		v.Result, _ = json.Marshal(string(value)) // a string: cannot fail
	default:
		v.ResultBytes = value
	}
	return v
}

// onceResult answers PUT /v1/once/{key}/result.
func (d *leases) onceResult(w http.ResponseWriter, r *door.Request) error {
	var body wire.OnceResult
	if err := r.ReadUpTo(&body, onceBody); err != nil {
		return err
	}
	key, recorder, err := d.run(r, body.LeaseID)
	if err != nil {
		return err
	}
	value := []byte(body.Result)
	if body.ResultBytes != nil {
		value = body.ResultBytes
	}
	req := driver.CompleteRequest{Name: key, LeaseID: driver.LeaseID(body.LeaseID), Retention: defaultRetention}
	if body.RetentionMS != 0 {
		req.Retention = ms(body.RetentionMS)
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
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	header, err := d.headerOf(ctx, key, req.LeaseID)
	if err != nil {
		return d.about(ctx, "once", key, req.LeaseID, err)
	}
	req.Record = oncerecord.Format(header, value)
	// INVARIANT I6: the store knows a repeat by the lease ID.
	f := ask.Until(ctx, requestTimeout, func(ctx context.Context) error { return recorder.Complete(ctx, req) })
	if err := f.Effective(); err != nil {
		return d.about(ctx, "once", key, req.LeaseID, err)
	}
	r.House.Limits.Ended(r.Caller, req.LeaseID)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// headerOf returns the token and the fingerprint of a run, which the store has beside its
// lease; or, if that is over, those of the record, which may be that of this very run.
func (d *leases) headerOf(ctx context.Context, key string, id driver.LeaseID) (h oncerecord.Header, err error) {
	f := ask.Until(ctx, requestTimeout, func(ctx context.Context) error {
		lock, err := d.house.Engine.Inspect(ctx, key)
		if err != nil {
			return err
		}
		for _, lease := range lock.Live() {
			if id.Is(lease.LeaseID) {
				h = oncerecord.Header{Token: lease.Token, Fingerprint: lease.Holder.Fingerprint}
				return nil
			}
		}
		record, found, err := d.house.Features.Recorder.Recall(ctx, key)
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
func (d *leases) onceFail(w http.ResponseWriter, r *door.Request) error {
	var body wire.OnceFailure
	if err := r.Read(&body); err != nil {
		return err
	}
	key, _, err := d.run(r, body.LeaseID)
	if err != nil {
		return err
	}
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	if err := d.end(ctx, r, key, driver.LeaseID(body.LeaseID)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// run checks which run of do-once work a request is about.
func (d *leases) run(r *door.Request, id string) (key string, recorder driver.Recorder, err error) {
	if key, recorder, err = d.onceKey(r); err != nil {
		return key, nil, err
	}
	if !driver.LeaseID(id).Valid() {
		return key, nil, door.Invalid("lease_id: want that of the run, 32 hexadecimal digits")
	}
	return key, recorder, nil
}

// onceKey returns the do-once key in the path of a request.
func (d *leases) onceKey(r *door.Request) (string, driver.Recorder, error) {
	key, err := pathName(r, "key")
	if err != nil {
		return "", nil, err
	}
	if err := r.Need(caller.Once, key); err != nil {
		return "", nil, err
	}
	recorder := d.house.Features.Recorder
	if recorder == nil {
		return "", nil, fmt.Errorf("once %q: do-once work is %w", key, driver.ErrUnsupported)
	}
	return key, recorder, nil
}

// onceStatus answers GET /v1/once/{key}.
func (d *leases) onceStatus(w http.ResponseWriter, r *door.Request) error {
	key, _, err := d.onceKey(r)
	if err != nil {
		return err
	}
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	s, err := d.house.Client.OnceStatus(ctx, key)
	if err != nil {
		return err
	}
	if s.State == holdfast.OnceAbsent {
		return unknownKey(key)
	}
	e := holdfast.OnceEntry{
		Key: key, State: s.State, Holder: s.Holder, Since: s.Since, Token: s.Result.Token, Length: len(s.Result.Value), ExpiresIn: s.ExpiresIn,
	}
	v := wire.OnceState{Once: view.Once(e)}
	if s.State == holdfast.OnceDone {
		done := onceDone(key, s.Result.Token, s.Result.Value)
		v.Result, v.ResultBytes = done.Result, done.ResultBytes
	}
	return door.Write(w, http.StatusOK, v)
}

// onceForget answers DELETE /v1/once/{key}.
func (d *leases) onceForget(w http.ResponseWriter, r *door.Request) error {
	key, _, err := d.onceKey(r)
	if err != nil {
		return err
	}
	ctx, cancel, err := r.Budgeted()
	if err != nil {
		return err
	}
	defer cancel()
	found, err := d.house.Client.OnceForget(ctx, key)
	switch {
	case err != nil:
		return err
	case !found:
		return unknownKey(key)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func unknownKey(key string) error {
	return &door.Refusal{
		Status: http.StatusNotFound, Code: "no-result",
		Detail: fmt.Sprintf("once %q: nobody does it, and there is no result", key),
	}
}

// onceList answers GET /v1/once.
func (d *leases) onceList(w http.ResponseWriter, r *door.Request) error {
	return answerList(w, r, caller.Once, d.house.Client.OnceList, func(e holdfast.OnceEntry) string { return e.Key }, view.Once,
		func(once []wire.Once, next string) any { return wire.Onces{Once: once, NextCursor: next} })
}
