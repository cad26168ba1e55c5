package oncehttp

import (
	"net/http"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/codes"
	"github.com/holdfast-locks/holdfast/internal/problem"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/wire"
)

// again is the Retry-After of refusals that end soon, in seconds.
const again = "1"

// refuse answers with p.
func (x *exchange) refuse(p wire.Problem, err error) {
	if x.opts.ProblemBase != "" {
		p.Type = x.opts.ProblemBase + p.Code
	}
	if p.Status == http.StatusConflict || p.Status == http.StatusServiceUnavailable {
		x.w.Header().Set("Retry-After", again)
	}
	problem.Write(x.w, p)
	x.tell(&observe.Event{Kind: observe.RequestRefused, Status: p.Status, Code: p.Code, Err: err})
}

// storeProblem explains why the handler did not run. The error may name hosts of
// the store, so the client must not see it.
func storeProblem(err error) wire.Problem {
	code := codes.Of(err)
	switch code.Err {
	case holdfast.ErrInProgress:
		return refusal(code.Status, code.Underscored(), "the first request with this "+Header+" is still being processed: repeat this one later")
	case holdfast.ErrFingerprint:
		return refusal(code.Status, code.Underscored(), "this "+Header+" belongs to another request: method, path, query and body must be the same in a repeat")
	case holdfast.ErrDeadlock, holdfast.ErrUnsupported, holdfast.ErrPermission, holdfast.ErrKindMismatch, holdfast.ErrInvalid:
		return refusal(http.StatusInternalServerError, "misconfigured", "this server cannot keep responses as it is set up: nothing was done")
	}
	code = codes.Of(holdfast.ErrUnavailable)
	return refusal(code.Status, code.Underscored(), "whether this request was seen before could not be found out, so nothing was done: repeat it with the same "+Header)
}

func refusal(status int, code, detail string) wire.Problem {
	return wire.Problem{Status: status, Code: code, Detail: detail}
}

// interrupted is the refusal after work that may have been done, in part or as a whole.
var interrupted = refusal(http.StatusServiceUnavailable, "interrupted", "the request was interrupted, and what it did may not be final: repeat it with the same "+Header)
