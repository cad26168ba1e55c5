// Package driverdoor has the requests of engines: one for each method of driver.Engine
// and its optional interfaces, and a stream of news for each client.
//
// What it adds to the server's engine is little: it looks at what engines are guaranteed
// of requests, at the caller's rights, and at the time that is left. The desk keeps the
// watches of clients, whose notices go to their streams.
package driverdoor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/peer"
)

// A visit is one request of an engine that was let in, with the time that it has left.
type visit struct {
	*door.Request
	desk *desk
	ctx  context.Context
}

// Routes adds what is below /v1/driver. The caller must call stop when nobody is
// answered any more.
func Routes(mux *http.ServeMux, h *door.House) (stop func()) {
	d := newDesk(h)
	d.leases(mux)
	d.looks(mux)
	d.records(mux)
	mux.Handle("POST "+form.Base+form.Notices, h.Handle(d.stream))
	mux.Handle("POST "+form.Base+form.Events, h.Handle(d.events))
	return d.close
}

// handle adds a method that reads one value and answers with another.
func handle[Req, Reply any](d *desk, mux *http.ServeMux, method string, answer func(v *visit, req *Req) (Reply, error)) {
	mux.Handle("POST "+form.Base+method, d.house.Handle(func(w http.ResponseWriter, r *door.Request) error {
		ctx, cancel, err := r.Budgeted() // which a body that comes slowly uses up
		if err != nil {
			return err
		}
		defer cancel()
		var req Req
		if err := r.ReadUpTo(&req, d.longest(method)); err != nil {
			return err
		}
		reply, err := answer(&visit{Request: r, desk: d, ctx: ctx}, &req)
		if err != nil {
			return err
		}
		return door.Write(w, http.StatusOK, reply)
	}))
}

const (
	longOne    = 16 << 10 // bytes of one acquire in JSON, or more
	longSome   = 4 << 10  // of one of a batch without a holder
	longRecord = driver.MaxRecord/3*4 + longSome
)

// longest returns how many bytes the body of a request may have.
func (d *desk) longest(method string) int64 {
	switch method {
	case form.AcquireAll:
		return driver.MaxBatch * longOne
	case form.Extend, form.Refresh:
		return int64(d.house.Features.ExtendBatch()) * longSome
	case form.Complete:
		return longRecord
	}
	return door.BodyLimit
}

// need looks whether the caller has a right to a name. What it returns does not say the
// name, which the library adds.
func (v *visit) need(right caller.Rights, name string) error {
	err := v.Need(right, name)
	var refusal *door.Refusal
	if errors.As(err, &refusal) && refusal.Code == "not-permitted" {
		nameless := *refusal
		nameless.Detail = fmt.Sprintf("%s: you lack the right %q to it", driver.ErrPermission, right)
		return &nameless
	}
	return err
}

// stillWanted returns an error unless somebody still waits for the answer. It comes right
// before the request is carried out: what stood in a queue, or in a process that was
// stopped, may be long over, and its cancel forgotten (INVARIANT I5). What only lengthens,
// ends or looks does no harm late, so the system is not asked for that; see granting.
func (v *visit) stillWanted() error {
	if v.ctx.Err() != nil {
		return errGone
	}
	if end, ok := v.ctx.Deadline(); ok && !time.Now().Before(end) {
		return fmt.Errorf("%w: the time for the request was over before it was carried out: nothing was done", driver.ErrUnavailable)
	}
	return nil
}

// granting is stillWanted for what gives somebody something. That a caller has hung up is
// noticed by whatever reads its connection, but not at once: so the system is asked.
func (v *visit) granting() error {
	if conn := peer.Of(v.Context()); conn != nil && peer.HungUp(conn) {
		return errGone
	}
	return v.stillWanted()
}

var errGone = fmt.Errorf("%w: nobody waits for the answer any more: nothing was done", driver.ErrUnavailable)

// unsupported is the error of a method that the server's engine lacks.
func unsupported(method string) error { return fmt.Errorf("%s is %w", method, driver.ErrUnsupported) }

// show returns how the caller is shown others' lease IDs.
func (v *visit) show() form.Shown {
	if v.Caller.Rights.Has(caller.Admin) {
		return form.Whole
	}
	return form.Hidden
}
