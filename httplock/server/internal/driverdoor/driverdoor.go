// Package driverdoor serves the requests of engines: one for each method of driver.Engine
// and its optional interfaces, and two streams.
//
// It passes requests to the server's engine after it has checked what package driver
// guarantees to engines, the rights of the caller, and the time that is left. The desk keeps
// the watches of clients, whose notices go to their streams.
package driverdoor

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/peer"
)

// A visit is one request of an engine, with a context that ends with its budget.
type visit struct {
	*door.Request
	desk *desk
	ctx  context.Context
	name string // that the request is about; see form.Check
}

// Routes adds the paths below /v1/driver. The caller must call stop when all requests have
// been answered.
func Routes(mux *http.ServeMux, h *door.House) (stop func()) {
	d := newDesk(h, mux)
	d.leases()
	d.looks()
	d.records()
	d.handleStream(form.Notices, 0, d.stream)
	d.handleStream(form.Events, caller.Read, d.events)
	return d.close
}

// handle adds a method, for callers who have one of these rights. A server whose engine
// cannot carry it out answers that it is unsupported.
func handle[Req, Reply any](d *desk, method string, rights caller.Rights, can bool, answer func(v *visit, req *Req) (Reply, error)) {
	d.mux.Handle("POST "+form.Base+method, d.house.ForStore(rights, func(ctx context.Context, w http.ResponseWriter, r *door.Request) error {
		var req Req
		v := &visit{Request: r, desk: d, ctx: ctx} // a slow body uses up the time of ctx
		var may func(name string) error
		if method == form.Complete {
			may = func(name string) error { return v.need(caller.Once, name) }
		}
		err := r.ReadAbout(&req, d.longest(method), may)
		if err != nil {
			return err
		}
		if v.name, err = form.Check(&req, d.house.Features.ExtendBatch()); err != nil {
			return err
		}
		if !can {
			return unsupported(method)
		}
		reply, err := answer(v, &req)
		if err != nil {
			return err
		}
		return door.Write(w, http.StatusOK, reply)
	}))
}

// handleGrant does as handle, and refuses the request if the caller has hung up.
func handleGrant[Req, Reply any](d *desk, method string, right caller.Rights, can bool, answer func(v *visit, req *Req) (Reply, error)) {
	handle(d, method, right, can, func(v *visit, req *Req) (reply Reply, err error) {
		if err := v.granting(); err != nil {
			return reply, err
		}
		return answer(v, req)
	})
}

// handleNamed does as handleGrant, for callers who have this right to the name in the request.
func handleNamed[Req, Reply any](d *desk, method string, right caller.Rights, can bool, answer func(v *visit, req *Req) (Reply, error)) {
	handle(d, method, right, can, func(v *visit, req *Req) (reply Reply, err error) {
		if err := cmp.Or(v.need(right, v.name), v.granting()); err != nil {
			return reply, err
		}
		return answer(v, req)
	})
}

// handleStream adds a method that answers with lines.
func (d *desk) handleStream(method string, rights caller.Rights, answer door.Func) {
	d.mux.Handle("POST "+form.Base+method, d.house.For(rights, answer))
}

const (
	longOne    = 16 << 10 // bytes of an acquire in JSON, at most
	longSome   = 4 << 10  // of another request of a batch: it has no holder
	longRecord = driver.MaxRecord/3*4 + longSome
)

// longest returns the greatest length of a body for a method.
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

// need returns an error unless the caller has a right to a name. The text of the error lacks
// the name, because the client library adds it.
func (v *visit) need(right caller.Rights, name string) error {
	if err := v.Need(right, name); err == nil || name == "" || door.Reserved(name) {
		return err
	}
	return door.Lacks(right, name)
}

// stillWanted returns an error if the caller has hung up or its time has ended. Call it right
// before the engine: the network or a paused process may delay a request until its cancel is
// forgotten (INVARIANT I5).
func (v *visit) stillWanted() error {
	if v.ctx.Err() != nil {
		return errGone
	}
	if end, ok := v.ctx.Deadline(); ok && !time.Now().Before(end) {
		return fmt.Errorf("%w: the time for the request ended before it was carried out: nothing was done", driver.ErrUnavailable)
	}
	return nil
}

// granting does as stillWanted, and asks the system whether the caller has hung up, because
// the context ends only later. Renewals and releases do not need it: they do no harm late.
func (v *visit) granting() error {
	if conn := peer.Of(v.Context()); conn != nil && peer.HungUp(conn) {
		return errGone
	}
	return v.stillWanted()
}

var errGone = fmt.Errorf("%w: the caller no longer waits: nothing was done", driver.ErrUnavailable)

// unsupported returns the error of a method without its flag in driver.Capabilities.
func unsupported(method string) error { return fmt.Errorf("%s is %w", method, driver.ErrUnsupported) }

// show returns how the caller may see lease IDs.
func (v *visit) show() form.Shown {
	if v.Caller.Rights.Has(caller.Admin) {
		return form.Whole
	}
	return form.Hidden
}
