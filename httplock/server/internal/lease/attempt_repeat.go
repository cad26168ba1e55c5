package lease

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// A request with a key must be the first of its lease ID (driver.AcquireRequest.First). If
// it is not, the key may have been used for another request, or by another holder. The
// server then compares the request with the lease or place of that ID before it continues.
// Until then it changes nothing, so that no lease is extended by requests of others.

// A found is the lease or the place that the store has under a lease ID.
type found struct {
	Holding // its token is 0 for a place
	there   bool
}

// look reads the lease or place of the lease ID.
func (a *Attempt) look(ctx context.Context) (f found, err error) {
	lock, sent, err := a.store.Inspect(ctx, a.Req.Name)
	if err != nil {
		return f, a.Failed(err)
	}
	for _, h := range lock.Live() {
		if a.Req.LeaseID.Is(h.LeaseID) {
			return found{Holding{h, sent}, true}, nil
		}
	}
	for _, p := range lock.Queue {
		if a.Req.LeaseID.Is(p.LeaseID) {
			return found{Holding{lockinfo.Holding{Mode: p.Mode, Holder: p.Holder, Since: p.Since}, sent}, true}, nil
		}
	}
	return f, nil
}

// meet reads the lease or place of an earlier request with the same lease ID. It returns a
// refusal if that request had other terms or another holder.
func (a *Attempt) meet(ctx context.Context) (err error) {
	if a.seen, err = a.look(ctx); err != nil {
		return err
	}
	a.Req.First = false
	// After a request in doubt, it may be the lease or place of this very attempt.
	a.repeated = a.seen.there && (!a.uncertain || a.seen.Since > a.seen.sent.Sub(a.began))
	return a.compare(a.seen)
}

// recognise completes a grant. It reads a lease that meet has not seen: that was a place then,
// or another copy of the request has acquired it since. A quorum has no places, so there a copy may
// have waited without a trace. INVARIANT I1: that copy may have another holder.
func (a *Attempt) recognise(ctx context.Context, g Grant) (Grant, error) {
	if !a.repeated && !a.unseen {
		return g, nil
	}
	if a.seen.Token != g.Token {
		f, err := a.look(ctx)
		if err != nil { // the lease exists
			return g, fmt.Errorf("%w: %s", driver.ErrOutcomeUnknown, err.Error())
		}
		a.seen = f
		if err := a.compare(f); err != nil {
			return g, err
		}
	}
	if !a.repeated {
		return g, nil
	}
	g.Repeated, g.holder = true, a.seen.Holder
	if a.seen.Token == g.Token {
		g.ends = a.seen.Ends()
	}
	return g, nil
}

// compare returns a refusal unless this request has the terms of the lease or place f.
func (a *Attempt) compare(f found) error {
	switch {
	case !f.there:
		return nil
	case f.Mode != a.Req.Mode, f.Token != 0 && f.Token <= a.Req.MinToken, !sameTerms(f.Holder, a.Req.Holder):
		return &door.Refusal{
			Status: http.StatusUnprocessableEntity, Code: "key-reused",
			Detail: a.about(fmt.Sprintf("this Idempotency-Key was used for another request, which has %s: draw a key for each attempt to work", f.what())),
		}
	case !sameHolder(f.Holder, a.Req.Holder):
		return &door.Refusal{
			Status: http.StatusConflict, Code: "other-holder",
			Detail: a.about(fmt.Sprintf("the request with this Idempotency-Key was that of %s: draw a key for each attempt to work", f.Holder)),
			More: func(p *wire.Problem) {
				p.Holders = []wire.Blocker{wire.BlockerOf(driver.Blocker{Holder: f.Holder, Since: f.Since, ExpiresIn: time.Until(f.Ends())})}
			},
		}
	}
	return a.otherRequest(f.Holder.Fingerprint)
}

// sameHolder compares the fields that clients choose. One lease ID belongs to one caller.
func sameHolder(a, b lockinfo.Holder) bool {
	return a.Host == b.Host && a.PID == b.PID && a.Program == b.Program && a.Label == b.Label
}

// what describes a lease or a place for people.
func (f found) what() string {
	text := "mode " + f.Mode.Kind()
	if f.Mode.Limit() != 0 {
		text += " with " + f.Mode.String()
	}
	if f.Token != 0 {
		text += fmt.Sprintf(" and the token %d", f.Token)
	}
	if f.Holder.Labels[namesLabel] != "" {
		text += ", together with other names"
	}
	for _, label := range []string{minHoldLabel, LockDelayLabel} {
		if value := f.Holder.Labels[label]; value != "" {
			text += " and " + strings.TrimPrefix(label, "holdfast/") + " " + value
		}
	}
	return text
}
