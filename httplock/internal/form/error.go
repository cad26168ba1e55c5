package form

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/wire"
)

// An Error is the error of one item of a batch. The error of a whole request is a problem.
type Error struct {
	Code   string `json:"code"` // of wire.DriverCodes
	Detail string `json:"detail,omitempty"`
	Author string `json:"author,omitempty"` // of a break
	Reason string `json:"reason,omitempty"`
}

// ErrorOf returns the form of an error, nil for none. An error that is not definite has the
// code outcome-unknown.
func ErrorOf(err error) *Error {
	if err == nil {
		return nil
	}
	e := &Error{Code: cmp.Or(wire.DriverCodes().Of(err).Name, unknown), Detail: err.Error()}
	if broken, ok := errors.AsType[*lockinfo.BrokenError](err); ok {
		e.Author, e.Reason = broken.Author, broken.Reason
	}
	return e
}

// Err returns the error that e describes, or nil if e is nil.
func (e *Error) Err() error {
	if e == nil {
		return nil
	}
	return ErrorFor(e.Code, e.Detail, e.Author, e.Reason)
}

const unknown = "outcome-unknown"

// ErrorFor returns the error with a code and these texts. It is definite only if the code is
// in classes, or is "broken".
func ErrorFor(code, detail, author, reason string) error {
	if code == "broken" {
		return &lockinfo.BrokenError{Author: author, Reason: reason}
	}
	if code == "lost" && detail == driver.ErrLost.Error() {
		return driver.ErrLost
	}
	return &remoteError{class: classes[code], detail: detail}
}

// classes maps codes to definite errors. A server that drains, or whose engine was closed, is
// unavailable: other servers may answer.
var classes = map[string]error{
	"lost":              driver.ErrLost,
	"not-permitted":     driver.ErrPermission,
	"unsupported":       driver.ErrUnsupported,
	"kind-mismatch":     driver.ErrKindMismatch,
	"invalid":           driver.ErrInvalid,
	"closed":            driver.ErrUnavailable,
	"draining":          driver.ErrUnavailable,
	"store-unavailable": driver.ErrUnavailable,
}

// refusals maps an HTTP status to an error, for requests that the server refuses before it
// calls its engine. The codes of such replies are for people.
var refusals = map[int]error{
	http.StatusUnauthorized:                driver.ErrPermission,
	http.StatusForbidden:                   driver.ErrPermission,
	http.StatusNotFound:                    driver.ErrUnsupported, // a method that the server does not know
	http.StatusMethodNotAllowed:            driver.ErrUnsupported,
	http.StatusRequestTimeout:              driver.ErrUnavailable,
	http.StatusTooManyRequests:             driver.ErrUnavailable,
	http.StatusBadRequest:                  driver.ErrInvalid,
	http.StatusRequestEntityTooLarge:       driver.ErrInvalid,
	http.StatusUnsupportedMediaType:        driver.ErrInvalid,
	http.StatusMisdirectedRequest:          driver.ErrInvalid,
	http.StatusRequestHeaderFieldsTooLarge: driver.ErrInvalid,
}

// Refused returns the error for a problem.
func Refused(p wire.Problem) error {
	if class := refusals[p.Status]; class != nil && p.Code != "" && classes[p.Code] == nil {
		return fmt.Errorf("%w: %s", class, p.Detail)
	}
	return ErrorFor(p.Code, p.Detail, "", "")
}

// A remoteError came from a server.
type remoteError struct {
	class  error // nil: the error is not definite
	detail string
}

func (e *remoteError) Error() string {
	switch {
	case e.detail != "":
		return e.detail
	case e.class != nil:
		return e.class.Error()
	}
	return driver.ErrOutcomeUnknown.Error()
}

func (e *remoteError) Unwrap() error { return e.class }

// RefreshReplyOf returns the form of a reply.
func RefreshReplyOf(r driver.RefreshReply) RefreshReply {
	if r.Err != nil {
		return RefreshReply{Error: ErrorOf(r.Err)}
	}
	return RefreshReply{AcquireReply: &r.AcquireReply}
}

// Driver returns the reply of a form.
func (r RefreshReply) Driver() driver.RefreshReply {
	switch {
	case r.Error != nil:
		return driver.RefreshReply{Err: r.Error.Err()}
	case r.AcquireReply == nil:
		return driver.RefreshReply{Err: errNothing}
	}
	return driver.RefreshReply{AcquireReply: *r.AcquireReply}
}

var errNothing = errors.New("the server's answer has nothing about the place")

// DiagnosisOf returns the form of a diagnosis.
func DiagnosisOf(d driver.Diagnosis) Diagnosis {
	return Diagnosis{each(d.Findings, func(f driver.Finding) Finding { return Finding{f, ErrorOf(f.Err)} })}
}

// Driver returns the diagnosis of a form.
func (d Diagnosis) Driver() driver.Diagnosis {
	return driver.Diagnosis{Findings: each(d.Findings, func(f Finding) driver.Finding {
		f.Err = f.Error.Err()
		return f.Finding
	})}
}

// LossOf returns the form of a loss.
func LossOf(l driver.Loss) *Loss { return &Loss{l, ErrorOf(l.Err)} }

// Driver returns the loss of a form.
func (l *Loss) Driver() driver.Loss {
	l.Err = l.Error.Err()
	return l.Loss
}
