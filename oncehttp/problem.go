package oncehttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-locks/holdfast"
)

// A problem is the body of a refusal, as in RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`

	// ResponseStatus is of the response that is not kept.
	ResponseStatus int `json:"response_status,omitempty"`
}

// again is the Retry-After of refusals that are over soon, in seconds.
const again = "1"

// refuse answers with p.
func (m *Middleware) refuse(w http.ResponseWriter, name string, p problem, err error) {
	p.Title, p.Type = http.StatusText(p.Status), "about:blank"
	if m.opts.ProblemBase != "" {
		p.Type = m.opts.ProblemBase + p.Code
	}
	body, e := json.Marshal(p)
	if e != nil {
		panic(fmt.Sprintf("oncehttp: a problem of strings and numbers: %v", e))
	}
	if p.Status == http.StatusConflict || p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", again)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs no answer
	m.opts.Observer(Event{Kind: Refused, Name: name, Status: p.Status, Code: p.Code, Err: err})
}

// storeProblem says why the handler did not run. The error may name hosts of
// the store, so it is not for the client.
func storeProblem(err error) problem {
	switch {
	case errors.Is(err, holdfast.ErrInProgress):
		return problem{
			Status: http.StatusConflict, Code: "in_progress",
			Detail: "the first request with this " + Header + " is still being processed: repeat this one later",
		}
	case errors.Is(err, holdfast.ErrFingerprint):
		return problem{
			Status: http.StatusUnprocessableEntity, Code: "key_reused",
			Detail: "this " + Header + " belongs to another request: method, path, query and body must be the same in a repeat",
		}
	}
	mistakes := []error{holdfast.ErrDeadlock, holdfast.ErrUnsupported, holdfast.ErrPermission, holdfast.ErrKindMismatch, holdfast.ErrInvalid}
	for _, mistake := range mistakes {
		if errors.Is(err, mistake) {
			return problem{
				Status: http.StatusInternalServerError, Code: "misconfigured",
				Detail: "this server cannot keep responses as it is set up: nothing was done",
			}
		}
	}
	return problem{
		Status: http.StatusServiceUnavailable, Code: "store_unavailable",
		Detail: "whether this request was seen before could not be found out, so nothing was done: repeat it with the same " + Header,
	}
}

// interrupted is for work that may have been done, in part or as a whole.
var interrupted = problem{
	Status: http.StatusServiceUnavailable, Code: "interrupted",
	Detail: "the request was interrupted, and what it did may not be final: repeat it with the same " + Header,
}
