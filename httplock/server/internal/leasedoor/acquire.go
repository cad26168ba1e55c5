package leasedoor

import (
	"errors"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	defaultTTL = 30 * time.Second

	// longestWait is how long one request waits at most: proxies and clients give up an
	// answer that takes a minute.
	longestWait = 55 * time.Second

	// tokenHeader has the fencing token of a lease.
	tokenHeader = "Fencing-Token"
)

// acquire answers POST /v1/leases.
func (d *leases) acquire(w http.ResponseWriter, r *door.Request) error {
	a, err := d.begin(r)
	if err != nil {
		return err
	}
	g, err := a.waitPatiently()
	var queued *queuedError
	switch {
	case errors.As(err, &queued):
		return door.Write(w, http.StatusAccepted, queued.queued)
	case err != nil:
		return err
	}
	return a.granted(w, g)
}

// waitPatiently waits for as long as the request says.
func (a *attempt) waitPatiently() (grant, error) {
	ctx, cancel, err := a.r.Patient(a.patience())
	if err != nil {
		return grant{}, err
	}
	defer cancel()
	return a.wait(ctx, a.patience(), nil)
}

// patience returns how long this request is to wait.
func (a *attempt) patience() time.Duration { return min(ms(a.want.WaitMS), longestWait) }

// ms returns whole milliseconds as a duration, those that are too many as the longest.
func ms(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(max(-most, min(n, most))) * time.Millisecond
}

// acquireRequest returns what the store is asked for, without the lease ID.
func acquireRequest(r *door.Request, want *wire.LeaseRequest) (req driver.AcquireRequest, err error) {
	if want.TTLMS == 0 {
		want.TTLMS = defaultTTL.Milliseconds()
	}
	if want.Mode == "" {
		want.Mode = driver.Exclusive.String()
	}
	req = driver.AcquireRequest{
		Name: want.Name, Limit: want.Limit, Permits: want.Permits, TTL: ms(want.TTLMS),
		MinToken: want.MinToken, Holder: holderOf(r, want),
	}
	if err := req.Mode.UnmarshalText([]byte(want.Mode)); err != nil {
		return req, door.Invalid(err.Error())
	}
	if req.Mode == driver.Semaphore && req.Permits == 0 {
		req.Permits = 1
	}
	opts := holdfast.AcquireOptions{
		Mode: req.Mode, Limit: req.Limit, Permits: req.Permits, TTL: req.TTL, Wait: ms(want.WaitMS),
		MinHold: ms(want.MinHoldMS), MinToken: req.MinToken,
	}
	for _, err := range []error{driver.CheckName(req.Name), opts.Check(), driver.CheckHolder(req.Holder)} {
		if err != nil {
			return req, door.Invalid(err.Error())
		}
	}
	return req, nil
}

// holderOf returns who has the lease, for people. The user is who was authenticated, so
// that nobody can pose as another; the rest is what the caller says.
func holderOf(r *door.Request, want *wire.LeaseRequest) driver.Holder {
	h := driver.Holder{User: r.Caller.Name, Reason: want.Reason, Labels: want.Labels}
	if self := want.Holder; self != nil {
		h.Host, h.PID, h.Program, h.Label = self.Host, self.PID, self.Program, self.Label
	}
	if want.MinHoldMS > 0 {
		h.Labels = maps.Clone(h.Labels)
		if h.Labels == nil {
			h.Labels = map[string]string{}
		}
		h.Labels[minHoldLabel] = strconv.FormatInt(want.MinHoldMS, 10)
	}
	return h
}

// granted answers with a lease.
func (a *attempt) granted(w http.ResponseWriter, g grant) error {
	w.Header().Set(tokenHeader, strconv.FormatUint(g.token, 10))
	return door.Write(w, http.StatusCreated, a.answer(g))
}

// otherRequest returns a refusal if do-once work is done for another request than this.
func (a *attempt) otherRequest(fingerprint string) error {
	if ours := a.req.Holder.Fingerprint; ours != "" && fingerprint != "" && ours != fingerprint {
		return a.failed(holdfast.ErrFingerprint)
	}
	return nil
}
