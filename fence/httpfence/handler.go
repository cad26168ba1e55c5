package httpfence

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/internal/codes"
	"github.com/holdfast-locks/holdfast/internal/problem"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/wire"
)

// HandlerOptions are the options of NewHandler. Nil means the defaults.
type HandlerOptions struct {
	// Resource names the resource that a request is about. The default is the
	// path of its URL: right where each path is one resource, and wrong where
	// several paths change the same one.
	Resource func(*http.Request) string

	// Observer gets every decision. A Gate has an Observer of its own: with both, each
	// decision counts twice.
	Observer observe.Observer
}

// A handler is what NewHandler returns.
type handler struct {
	next  http.Handler
	marks fence.Marks
	opts  HandlerOptions

	reports *fence.Reporter
}

// NewHandler returns a handler that calls next unless the token of a request is
// stale, or a write has none. The claim is in the header field Fencing-Token, see
// FormatHeader.
//
// A request that writes (any method but GET, HEAD, OPTIONS and TRACE) must
// have a claim, which is checked. A request that reads may have one, which is
// advanced before next runs. A client that will write a value computed from the
// response must send the claim with the read. Without a claim, a read is passed
// on unchanged.
//
// If marks is a fence.Writer, as Gate.Marks is, next runs while no other holder
// is accepted for the resource, and must finish its write before it returns.
// Otherwise a newer holder may be accepted before next writes. Then next must
// make the check part of its write: in its transaction, for example, with
// sqlfence and ClaimFromContext.
//
// A request that is not passed on is answered with application/problem+json,
// whose field "code" is one of these:
//
//	428 token_missing     a write has no token
//	400 token_malformed   the header field is not one claim
//	400 resource_invalid  the name of the resource is invalid, see fence.CheckClaim
//	412 token_stale       with "token" and, where known, "current"
//	503 marks_unavailable the store of marks could not tell
func NewHandler(next http.Handler, marks fence.Marks, opts *HandlerOptions) http.Handler {
	h := &handler{next: next, marks: marks, opts: *cmp.Or(opts, &HandlerOptions{})}
	if h.opts.Resource == nil {
		h.opts.Resource = func(r *http.Request) string { return r.URL.Path }
	}
	h.reports = fence.NewReporter(h.opts.Observer)
	return h
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := claimOf(r.Header)
	switch {
	case errors.Is(err, errNoHeader) && reads(r.Method):
		h.next.ServeHTTP(w, r)
		return
	case errors.Is(err, errNoHeader):
		problem.Write(w, wire.Problem{Status: http.StatusPreconditionRequired, Code: "token_missing", Detail: "a write needs the header " + Header + ": the token of the lease under which it is made"})
		return
	case err != nil:
		problem.Write(w, wire.Problem{Status: http.StatusBadRequest, Code: "token_malformed", Detail: err.Error()})
		return
	}
	resource := h.opts.Resource(r)
	if err := fence.CheckClaim(resource, c); err != nil {
		problem.Write(w, wire.Problem{Status: http.StatusBadRequest, Code: "resource_invalid", Detail: err.Error()})
		return
	}
	err = h.guard(resource, c, r, func() {
		h.reports.Report(r.Context(), resource, c, nil)
		h.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), claimKey{}, c)))
	})
	if err == nil {
		return
	}
	h.reports.Report(r.Context(), resource, c, err)
	if stale, refused := errors.AsType[*fence.StaleError](err); refused {
		code := codes.Of(stale)
		problem.Write(w, wire.Problem{Status: code.Status, Code: code.Underscored(), Detail: err.Error(), Token: stale.Token, Current: stale.Current})
		return
	}
	// The error may name hosts of the store: it is not for the client.
	problem.Write(w, wire.Problem{Status: http.StatusServiceUnavailable, Code: "marks_unavailable", Detail: "the tokens seen so far could not be read: nothing was done"})
}

// guard calls pass if the claim is accepted, and returns an error if not.
func (h *handler) guard(resource string, c fence.Claim, r *http.Request, pass func()) error {
	show := h.marks.Advance
	if !reads(r.Method) {
		if w, ok := h.marks.(fence.Writer); ok {
			return w.Write(r.Context(), resource, c, pass)
		}
		show = h.marks.Check
	}
	if err := show(r.Context(), resource, c); err != nil {
		return err
	}
	pass()
	return nil
}

// reads reports whether a method promises to change nothing.
func reads(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// A claimKey is the key of the claim that a handler accepted.
type claimKey struct{}

// ClaimFromContext returns the claim of the request that ctx belongs to, if a
// handler of this package has accepted one.
func ClaimFromContext(ctx context.Context) (fence.Claim, bool) {
	c, ok := ctx.Value(claimKey{}).(fence.Claim)
	return c, ok
}
