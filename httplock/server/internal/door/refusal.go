package door

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/internal/codes"
	"github.com/holdfast-locks/holdfast/internal/problem"
	"github.com/holdfast-locks/holdfast/wire"
)

// A Refusal is a response with an error.
type Refusal struct {
	Status int
	Code   string              // for programs
	Detail string              // for people: what happened, and what to do
	Name   string              // of the lock or key that the caller lacks a right to; for the audit log
	Again  time.Duration       // when to retry; 0 if a retry is of no use
	More   func(*wire.Problem) // sets further fields; may be nil
	Header http.Header         // of the response
}

func (r *Refusal) Error() string { return r.Detail }

// Invalid returns the refusal of an invalid request.
func Invalid(detail string) error {
	return &Refusal{Status: http.StatusBadRequest, Code: "invalid", Detail: detail}
}

// Lacks returns the refusal of a caller that lacks a right. Its text leaves out the name.
func Lacks(right caller.Rights, name string) *Refusal {
	return &Refusal{
		Status: http.StatusForbidden, Code: "not-permitted", Detail: fmt.Sprintf("you lack the right %q", right), Name: name,
	}
}

// Forbidden does as Lacks, for a right to a name, or to the names with a prefix. The empty
// prefix is every name.
func Forbidden(right caller.Rights, name string) error {
	refusal, to := Lacks(right, name), "every name"
	if name != "" {
		to = strconv.Quote(name)
	}
	refusal.Detail += " to " + to
	return refusal
}

// Refuse writes err as a problem. It must be the first write of the response.
func Refuse(w http.ResponseWriter, r *Request, err error) {
	refusal := RefusalOf(r.Told(err))
	denied := refusal.Status == http.StatusUnauthorized || refusal.Status == http.StatusForbidden
	if denied && (r.Caller != nil || r.House.strangers.log(r.House.Log)) {
		r.Audit("refused", slog.String("code", refusal.Code), slog.String("name", refusal.Name), slog.String("detail", refusal.Detail))
	}
	Patience(w)
	maps.Copy(w.Header(), refusal.Header)
	if refusal.Again > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refusal.Again.Seconds()))))
	}
	problem.Write(w, refusal.problem())
}

// Problem returns the problem by which an answer to r shows err.
func (r *Request) Problem(err error) wire.Problem { return RefusalOf(r.Told(err)).problem() }

func (r *Refusal) problem() wire.Problem {
	p := wire.Problem{Status: r.Status, Code: r.Code, Detail: r.Detail}
	if r.More != nil {
		r.More(&p)
	}
	return p
}

// again is when to retry after a conflict, or when the store was unavailable.
const again = time.Second

// RefusalOf returns the refusal for any error. After an unknown error the outcome is
// unknown.
func RefusalOf(err error) *Refusal {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal
	}
	if exceeded, ok := errors.AsType[*limit.Exceeded](err); ok {
		status := http.StatusTooManyRequests
		if exceeded.Busy {
			status = http.StatusServiceUnavailable
		}
		return &Refusal{Status: status, Code: exceeded.Code, Detail: exceeded.Detail, Again: exceeded.Again}
	}
	code := cmp.Or(codes.Of(err), codes.Of(driver.ErrOutcomeUnknown))
	refusal := &Refusal{Status: code.Status, Code: code.Name, Detail: err.Error()}
	if refusal.Status == http.StatusConflict || refusal.Status == http.StatusServiceUnavailable {
		refusal.Again = again
	}
	return refusal
}
