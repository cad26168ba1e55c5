package form

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/wire"
)

// An Error is what came of one thing of several. That of a whole request is a problem.
type Error struct {
	Code   string `json:"code"` // of wire.DriverCodes
	Detail string `json:"detail,omitempty"`
	Author string `json:"author,omitempty"` // of a break
	Reason string `json:"reason,omitempty"`
}

// ErrorOf returns the form of an error, nil for none. What is not definite is unknown.
func ErrorOf(err error) *Error {
	if err == nil {
		return nil
	}
	e := &Error{Code: wire.DriverCodes().Of(err).Name, Detail: err.Error()}
	if e.Code == "" {
		e.Code = unknown
	}
	var broken *driver.BrokenError
	if errors.As(err, &broken) {
		e.Author, e.Reason = broken.Author, broken.Reason
	}
	return e
}

// Err returns the error that the form is of, nil for none.
func (e *Error) Err() error {
	if e == nil {
		return nil
	}
	return ErrorFor(e.Code, e.Detail, e.Author, e.Reason)
}

const unknown = "outcome-unknown"

// ErrorFor returns the error that has a code and these texts. What the code does not say
// to be definite is not.
func ErrorFor(code, detail, author, reason string) error {
	if code == "broken" {
		return &driver.BrokenError{Author: author, Reason: reason}
	}
	if code == "lost" && detail == driver.ErrLost.Error() {
		return driver.ErrLost
	}
	return &told{class: classes[code], detail: detail}
}

// classes are the definite errors by their codes. That the server is about to stop, and
// that its engine was closed, is no more than that it cannot be asked: others can be.
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

// refusals are what the server says by a status before it asks its store: the code is for
// people then.
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

// Refused returns the error of a problem that the server has answered with.
func Refused(p wire.Problem) error {
	if class := refusals[p.Status]; class != nil && p.Code != "" && classes[p.Code] == nil {
		return fmt.Errorf("%w: %s", class, p.Detail)
	}
	return ErrorFor(p.Code, p.Detail, "", "")
}

// A told error is one that a server has told of.
type told struct {
	class  error // nil: it is not definite
	detail string
}

func (e *told) Error() string {
	switch {
	case e.detail != "":
		return e.detail
	case e.class != nil:
		return e.class.Error()
	}
	return driver.ErrOutcomeUnknown.Error()
}

func (e *told) Unwrap() error { return e.class }
