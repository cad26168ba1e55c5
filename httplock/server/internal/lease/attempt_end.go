package lease

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/header"
	"github.com/holdfast-locks/holdfast/wire"
)

// last ends a wait without the lock, unless the lock was handed over at the last moment:
// then the next request is granted it.
func (w *waiter) last(ctx context.Context) (handedOver bool, err error) {
	draining := w.R.NewWork()
	switch {
	case w.Async && w.Blocker.Place > 0:
		return false, w.queued()
	case draining != nil && w.keyed: // the place stays for a repeat at another server
	default:
		if handedOver, err = w.giveUp(ctx); handedOver || err != nil {
			return handedOver, err
		}
	}
	if draining != nil {
		return false, draining
	}
	return false, w.held()
}

// giveUp leaves the queue, but does not cancel the lease ID: a copy of the request at another
// server may have been granted the lease. Without a place it does nothing.
func (w *waiter) giveUp(ctx context.Context) (handedOver bool, err error) {
	if w.Blocker.Place == 0 {
		return false, nil
	}
	queuer := w.store.House.Features.Queuer
	f := ask.Until(ctx, RequestTimeout, func(ctx context.Context) error {
		reply := queuer.Refresh(ctx, []driver.RefreshRequest{{Name: w.Req.Name, LeaseID: w.Req.LeaseID}})[0]
		handedOver = reply.Err == nil && reply.Outcome == driver.Granted
		return reply.Err
	})
	if f != nil && !f.Lost() {
		return false, w.Failed(f.Effective())
	}
	w.Req.Queue, w.Req.WaiterTTL, w.gaveUp = false, 0, true // later requests take no place
	return handedOver, nil
}

// abandon cancels attempts of one request, which the client cannot continue, one after the other.
// If the store does not answer, they expire, and count until then.
func abandon(all ...*Attempt) {
	if len(all) == 0 {
		return
	}
	r, d := all[0].R, all[0].store
	ctx := context.WithoutCancel(r.Context())
	go func() {
		_ = r.House.Guard(ctx, "cancel", func() {
			for _, a := range all {
				err := d.Cancel(ctx, driver.ReleaseRequest{Name: a.Req.Name, LeaseID: a.Req.LeaseID, Cancel: true})
				if err != nil && !errors.Is(err, driver.ErrLost) {
					return
				}
				r.House.Limits.Ended(r.Caller, a.counted())
			}
		})
	}()
}

// A queuedError ends a wait that keeps its place.
type queuedError struct{ queued wire.Queued }

func (e *queuedError) Error() string {
	return fmt.Sprintf("place %d of %d", e.queued.Place, e.queued.QueueLength)
}

func (a *Attempt) queued() error {
	b := &a.Blocker
	return &queuedError{wire.Queued{
		Place: b.Place, QueueLength: b.Queue, Holders: []wire.Blocker{wire.BlockerOf(*b)}, PlaceExpiresInMS: Left(a.Req.WaiterTTL, a.sent),
	}}
}

// write answers a client that wants to repeat the request later.
func (e *queuedError) write(w http.ResponseWriter) error {
	w.Header().Set("Preference-Applied", respondAsync)
	return door.Write(w, http.StatusAccepted, e.queued)
}

const respondAsync = "respond-async"

// prefersAsync reports whether the client sends Prefer: respond-async (RFC 7240). If it does
// not get the lock, it then keeps its place and repeats the request.
func prefersAsync(h http.Header) bool {
	for one := range header.List(h, "Prefer") {
		name, _, _ := strings.Cut(one, ";")
		if strings.EqualFold(strings.TrimSpace(name), respondAsync) {
			return true
		}
	}
	return false
}
