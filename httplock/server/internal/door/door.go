// Package door is the common base of all request handlers of the server: callers and their
// rights, bodies, refusals, and the budget of a request.
package door

import (
	"context"
	"errors"
	"log/slog"
	"math"
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

// A House is the server as its handlers see it.
type House struct {
	Engine   driver.Engine
	Features driver.Features  // of the engine
	Client   *holdfast.Client // of the engine
	Limits   *limit.Limits    // of each caller
	Shapes   strict.Shapes    // of request bodies
	Log      *slog.Logger
	Observer holdfast.Observer                      // may be nil
	Secret   func(context.Context) ([]byte, error)  // the key of lease IDs, the same on all servers of the store
	Identify func(*Request) (*caller.Caller, error) // identifies the caller of a request; nil: every client may do everything
	Draining <-chan struct{}                        // closed when no new work is taken

	closing    []func(context.Context) error
	background background
	strangers  strangers
}

// OnClose registers f, to be called when the server closes, before the client does.
func (h *House) OnClose(f func(context.Context) error) { h.closing = append(h.closing, f) }

// Close ends the background work of the handlers, and the client.
func (h *House) Close(ctx context.Context) error {
	var errs []error
	for _, f := range append(h.closing, h.background.close) {
		errs = append(errs, f(ctx))
	}
	return errors.Join(append(errs, within(ctx, h.Client.Close))...) // Close ends after its request timeout
}

// A Request is a request to a server, with its caller.
type Request struct {
	*http.Request
	House  *House
	Caller *caller.Caller

	answer  *answer
	vouched time.Time // when the caller was last identified; see Revoked
	revoked bool
	counted int64 // bytes of the body that the limits count
}

// A Func answers a request. An error that it returns is written as a problem, if nothing was
// written before. Otherwise the response is cut off, so that the client does not take it for
// complete.
type Func func(w http.ResponseWriter, r *Request) error

// Handle returns f as a handler. The context of the request has the caller.
func (h *House) Handle(f Func) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a, ok := w.(*answer)
		if !ok {
			a = &answer{ResponseWriter: w}
		}
		r := &Request{Request: req, House: h, Caller: caller.From(req.Context()), answer: a}
		defer r.BodyDone()
		a.give(r, f)
	})
}

// Found returns the authenticated name of the caller, for other callers to see. It is empty
// on a server without authentication.
func (r *Request) Found() string {
	if r.House.Identify == nil {
		return ""
	}
	return r.Caller.Name
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

// Shows reports whether a list for this right may contain name. The prefix of a list may
// match reserved names.
func (r *Request) Shows(right caller.Rights, name string) bool {
	return !Reserved(name) && r.Caller.May(right, name)
}

// Reserved reports whether a name belongs to the servers, and to no caller.
func Reserved(name string) bool { return strings.HasPrefix(name, reserved) }

// reserved begins the names that servers use themselves.
const reserved = "holdfast@"

var errReserved error = &Refusal{
	Status: http.StatusForbidden, Code: "reserved-name",
	Detail: "names that begin with " + reserved + " are the servers' own: choose another one",
}

// Budgeted returns a context for requests to the store on behalf of r. It ends when the
// client disconnects, and when its budget is spent.
func (r *Request) Budgeted() (context.Context, context.CancelFunc) { return r.Patient(0) }

// Patient does as Budgeted, for a request that may wait this long before its last request
// to the store.
func (r *Request) Patient(wait time.Duration) (context.Context, context.CancelFunc) {
	left := wait + form.Budget
	if ms, err := r.TimeoutMS(); err == nil {
		left = time.Duration(min(ms, left.Milliseconds())) * time.Millisecond
	}
	return ask.Limit(r.Context(), left)
}

// TimeoutMS returns the milliseconds in the header form.Timeout of r, or math.MaxInt64 if there
// is none. Handlers refuse a request whose header it cannot read.
func (r *Request) TimeoutMS() (int64, error) {
	text := r.Header.Get(form.Timeout)
	if text == "" {
		return math.MaxInt64, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms <= 0 {
		return 0, Invalid(form.Timeout + ": want milliseconds, 1 or more")
	}
	return ms, nil
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
