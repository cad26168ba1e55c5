// Package door has what all doors of the server share: who asks, how a body is read,
// how a refusal is written, and how long a request may take.
package door

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/internal/form"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/strict"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// Budget is how long a request may take from where it began, over all hops.
const Budget = form.Budget

// TimeoutHeader is how many milliseconds of its budget a request has left.
const TimeoutHeader = form.Timeout

// A House is what is behind all doors.
type House struct {
	Engine   driver.Engine
	Features driver.Features  // of the engine
	Client   *holdfast.Client // of the engine
	Limits   *limit.Limits    // of each caller; nil: none
	Shapes   strict.Shapes    // of what is read
	Log      *slog.Logger
	Observer holdfast.Observer                     // may be nil
	Secret   func(context.Context) ([]byte, error) // of which lease IDs are made, the same on all servers of the store
	Draining <-chan struct{}                       // closed when no new work is taken

	closing []func(context.Context) error
}

// OnClose has f called when the server closes, before the client does. Doors say so while
// their routes are added.
func (h *House) OnClose(f func(context.Context) error) { h.closing = append(h.closing, f) }

// Close ends what the doors have in the background, and the client.
func (h *House) Close(ctx context.Context) error {
	var errs []error
	for _, f := range append(h.closing, h.Client.Close) {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}

// A Request is one that the server has let in.
type Request struct {
	*http.Request
	House  *House
	Caller *caller.Caller

	answer *answer
}

// A Func answers a request. An error that it returns is written as a problem, if nothing
// was written before; else the answer is cut, so that the caller sees that it is not whole.
type Func func(w http.ResponseWriter, r *Request) error

// Handle returns f as a handler of the house. The caller stands in the context.
func (h *House) Handle(f Func) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a := answerOf(w)
		a.give(&Request{Request: req, House: h, Caller: caller.From(req.Context()), answer: a}, f)
	})
}

// Need returns a refusal unless the caller has a right to name, or to all names that
// begin with it.
func (r *Request) Need(right caller.Rights, name string) error {
	switch {
	case Reserved(name):
		return errReserved
	case !r.Caller.May(right, name):
		return Forbidden(right, name)
	}
	return nil
}

// Shows reports whether a list that the caller has asked for by a right may have name in
// it: it may have asked for a prefix that reserved names begin with, too.
func (r *Request) Shows(right caller.Rights, name string) bool {
	return !Reserved(name) && r.Caller.May(right, name)
}

// Reserved reports whether servers keep something of their own under a name, which is
// for no caller.
func Reserved(name string) bool { return strings.HasPrefix(name, reserved) }

// reserved begins the names that servers use themselves.
const reserved = "holdfast@"

var errReserved error = &Refusal{
	Status: http.StatusForbidden, Code: "reserved-name",
	Detail: "names that begin with " + reserved + " are the servers' own: choose another one",
}

// Budgeted returns a context for what the store is asked because of r: it ends when
// the caller hangs up, and when the budget is spent that the caller has left.
func (r *Request) Budgeted() (context.Context, context.CancelFunc, error) { return r.Patient(0) }

// Patient does as Budgeted, for a request that may wait for this time before its last
// question to the store.
func (r *Request) Patient(wait time.Duration) (context.Context, context.CancelFunc, error) {
	left := wait + Budget
	if text := r.Header.Get(TimeoutHeader); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms <= 0 {
			return nil, nil, Invalid(TimeoutHeader + ": want milliseconds, 1 or more")
		}
		left = time.Duration(min(ms, left.Milliseconds())) * time.Millisecond
	}
	ctx, cancel := ask.Limit(r.Context(), left)
	return ctx, cancel, nil
}

// NewWork returns a refusal once the server drains.
func (r *Request) NewWork() error {
	select {
	case <-r.House.Draining:
		return errDraining
	default:
		return nil
	}
}

var errDraining error = &Refusal{
	Status: http.StatusServiceUnavailable, Code: "draining", Again: time.Second,
	Detail: "this server is about to stop: ask another one, or again soon; nothing was done",
}

// Gone reports whether err is that of a caller that has hung up.
func (r *Request) Gone(err error) bool {
	return r.Context().Err() != nil && errors.Is(err, context.Canceled)
}
