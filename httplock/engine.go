package httplock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An Engine sends its requests to the servers of one store. Use Open to make
// one.
type Engine struct{ *hidden }

// hidden is an alias: go doc does not list the methods of an embedded alias.
type hidden = engine

// Close ends the engine. Requests that are under way end with an error.
func (e *Engine) Close() error { return e.hidden.Close() }

// An engine implements Engine.
type engine struct {
	id          string // of its session
	capable     driver.Capabilities
	selfPruning bool

	servers []*server
	began   time.Time
	current atomic.Int64 // the index of the current server

	conns   conns
	routes  routes
	notices notices

	life context.Context // ends with Close
	end  context.CancelFunc
	wg   sync.WaitGroup // the goroutines in the background
}

// Capabilities implements driver.Engine. They are the capabilities of the server's engine
// when Open asked for them.
func (e *engine) Capabilities() driver.Capabilities { return e.capable }

// Close implements driver.Engine.
func (e *engine) Close() error {
	e.end()
	for _, s := range e.servers {
		s.talker.close()
	}
	e.notices.start.Do(func() {}) // from now on listen starts no goroutine
	e.wg.Wait()
	return nil
}

// Acquire implements driver.Engine.
func (e *engine) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	if err := driver.CheckSupport(e.capable, req); err != nil {
		return driver.AcquireReply{}, err
	}
	method := form.Acquire
	if req.Holder.Person {
		method = form.Hold
	}
	f, at, err := call[form.Reply](ctx, e, method, req)
	if err != nil {
		return driver.AcquireReply{}, err
	}
	if e.capable.Routes {
		e.routes.learn(req.Name, f.Route)
	}
	reply := f.AcquireReply
	switch {
	case reply.Outcome == driver.Granted:
		e.notices.granted(1)
	case reply.Outcome == driver.Held && reply.Place > 0:
		e.notices.placed(req, at)
	}
	return reply, nil
}

// Extend implements driver.Engine.
func (e *engine) Extend(ctx context.Context, reqs []driver.ExtendRequest) []error {
	reply, _, err := call[form.Renewed](ctx, e, form.Extend, form.Batch[driver.ExtendRequest]{Requests: reqs})
	if err == nil && len(reply.Errors) != len(reqs) {
		err = errShort
	}
	errs := make([]error, len(reqs))
	for i := range errs {
		if errs[i] = err; err == nil {
			errs[i] = reply.Errors[i].Err()
			e.routes.learnEach(reqs[i].Name, reply.Routes, i)
		}
	}
	return errs
}

// Release implements driver.Engine.
func (e *engine) Release(ctx context.Context, req driver.ReleaseRequest) error {
	e.notices.box.Note(req.LeaseID, func(p *place) { *p = place{} })
	_, _, err := call[form.Nothing](ctx, e, form.Release, req)
	if err == nil {
		e.notices.losses.Ended()
	}
	return err
}

// Inspect implements driver.Engine.
func (e *engine) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	f, _, err := call[form.Lock](ctx, e, form.Inspect, form.Name{Name: name})
	return f.State(), err
}

// errShort is not definite: the outcome of the request is unknown.
var errShort = fmt.Errorf("the server's answer has not as many parts as the request")
