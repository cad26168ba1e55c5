package lease

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

const (
	// DefaultTTL is the TTL of a request without one.
	DefaultTTL = 30 * time.Second

	// LongestWait is the longest wait of one request: proxies and clients time out after a
	// minute.
	LongestWait = 55 * time.Second

	// tokenHeader has the fencing token of a lease.
	tokenHeader = "Fencing-Token"
)

// WaitPatiently waits for as long as the request wants.
func (a *Attempt) WaitPatiently() (Grant, error) {
	ctx, cancel := a.R.Patient(a.patience())
	defer cancel()
	g, err := a.Wait(ctx, a.patience(), nil)
	if err == nil && !a.keyed && a.R.Context().Err() != nil { // the client is gone
		abandon(a)
		return g, ask.ContextError(a.R.Context())
	}
	return g, err
}

// patience returns how long this request waits.
func (a *Attempt) patience() time.Duration { return min(MS(a.Want.WaitMS), LongestWait) }

// MS returns milliseconds as a duration; too many become the longest one.
func MS(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(max(-most, min(n, most))) * time.Millisecond
}

// TTLOf returns the TTL of a request in milliseconds, or DefaultTTL if the request has none. It
// refuses a TTL below a second, unless short reports that the client means it.
func TTLOf(ms int64, short bool) (int64, error) {
	if ms > 0 && ms < 1000 && !short { // most such clients mean seconds
		return 0, door.Invalid(fmt.Sprintf("ttl_ms: %d is less than a second: for %d seconds send %d; for a lease of %d ms add \"short_ttl\": true",
			ms, ms, ms*1000, ms))
	}
	return cmp.Or(ms, DefaultTTL.Milliseconds()), nil
}

// acquireRequest returns the request to the store, without the lease ID.
func acquireRequest(r *door.Request, want *wire.LeaseRequest) (req driver.AcquireRequest, err error) {
	if want.TTLMS, err = TTLOf(want.TTLMS, want.ShortTTL); err != nil {
		return req, err
	}
	if want.WaitMS < 0 {
		return req, door.Invalid(fmt.Sprintf("wait_ms: %d is negative", want.WaitMS))
	}
	req = driver.AcquireRequest{
		Name: want.Name, TTL: MS(want.TTLMS),
		MinToken: want.MinToken, Holder: holderOf(r, want),
	}
	if req.Mode, err = modeOf(want); err != nil {
		return req, door.Invalid(err.Error())
	}
	opts := holdfast.AcquireOptions{
		Mode: req.Mode, TTL: req.TTL,
		MinHold: MS(want.MinHoldMS), LockDelay: MS(want.LockDelayMS), MinToken: req.MinToken,
	}
	if err := cmp.Or(driver.CheckName(req.Name), opts.Check(), driver.CheckHolder(req.Holder)); err != nil {
		return req, door.Invalid(err.Error())
	}
	req.TTL += opts.LockDelay
	return req, nil
}

// modeOf returns the mode in a request.
func modeOf(want *wire.LeaseRequest) (lockinfo.Mode, error) {
	f := modes.Fields{Limit: want.Limit, Permits: want.Permits}
	if want.Mode != "" {
		if err := f.Kind.UnmarshalText([]byte(want.Mode)); err != nil {
			return 0, err
		}
	}
	if f.Kind == modes.Semaphore && f.Permits == 0 {
		f.Permits = 1
	}
	return f.Mode(), f.Check()
}

// holderOf describes the holder for people. User and Caller are authenticated; the client
// chooses the rest.
func holderOf(r *door.Request, want *wire.LeaseRequest) lockinfo.Holder {
	h := lockinfo.Holder{User: r.Caller.Name, Caller: r.Found(), Reason: want.Reason, Labels: labels(want)}
	if self := want.Holder; self != nil {
		h.Host, h.PID, h.Program, h.Label = self.Host, self.PID, self.Program, self.Label
	}
	return h
}

// Serve answers POST /v1/leases.
func (d *Store) Serve(w http.ResponseWriter, r *door.Request) error {
	var want wire.LeaseRequest
	if err := r.Read(&want); err != nil {
		return err
	}
	if want.Names != nil {
		return d.serveAll(w, r, want)
	}
	a, err := d.NewAttempt(r, want)
	if err != nil {
		return err
	}
	return a.Serve(w)
}

// Serve waits for as long as the request allows, and answers with the lease or the place.
func (a *Attempt) Serve(w http.ResponseWriter) error {
	g, err := a.WaitPatiently()
	if queued, ok := errors.AsType[*queuedError](err); ok {
		return queued.write(w)
	}
	if err != nil {
		return err
	}
	status := g.Status()
	if a.Req.Once { // 200 is for work that is done
		status = http.StatusCreated
	}
	return Answer(w, status, g.Token, a.answer(g))
}

// Answer answers with v, and with the fencing token of a lease of the caller.
func Answer(w http.ResponseWriter, status int, token uint64, v any) error {
	w.Header().Set(tokenHeader, strconv.FormatUint(token, 10))
	return door.Write(w, status, v)
}

// Status returns the status of the response to a grant.
func (g Grant) Status() int {
	if g.Repeated {
		return http.StatusOK
	}
	return http.StatusCreated
}

// otherRequest returns a refusal if do-once work has the fingerprint of another request.
func (a *Attempt) otherRequest(fingerprint string) error {
	if ours := a.Req.Holder.Fingerprint; ours != "" && fingerprint != "" && ours != fingerprint {
		return a.Failed(holdfast.ErrFingerprint)
	}
	return nil
}
