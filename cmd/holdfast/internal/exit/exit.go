// Package exit has the exit statuses of holdfast. They follow sysexits.h where it has one
// for the case.
package exit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-locks/holdfast/internal/codes"
)

const (
	OK            = 0
	Not           = 1   // check, break: the lock is not held; once status: not done; token: cannot be redeemed
	Usage         = 64  // wrong arguments
	Unavailable   = 69  // the store cannot be reached or refuses to serve
	TooLong       = 73  // once: the command's output is too long to be recorded
	Output        = 74  // standard output cannot be written
	Busy          = 75  // another client has the lock
	NotPermitted  = 77  // the store refuses our credentials or rights
	Config        = 78  // the store cannot do this, or does not exist; or the command would wait for itself
	Lost          = 79  // the lock was lost while the command ran
	MaxHold       = 124 // --max-hold has passed; the status of timeout(1)
	NotExecutable = 126 // the command cannot be executed
	NotFound      = 127 // the command does not exist
)

// Signal returns the status of a process that a signal ended.
func Signal(sig syscall.Signal) int { return 128 + int(sig) }

// An Error is an error with the status to exit with. If Err is nil, the error has been reported
// already or needs no message.
type Error struct {
	Status int
	Err    error

	// Engine is set if Err comes from the client or the engine, without the context of a
	// command. Opening is set if it came while the store was opened.
	Engine, Opening bool

	// KeepLock is set if the lock must not be released, because processes still work
	// under it.
	KeepLock bool

	// EndBy is when the program must have ended, even if clean-up in the store is not complete;
	// zero: no limit.
	EndBy time.Time
}

func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// With returns err with a status, or nil if err is nil.
func With(status int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Status: status, Err: err}
}

// Errorf returns an error with a status and the text that fmt.Errorf makes.
func Errorf(status int, format string, arguments ...any) error {
	return &Error{Status: status, Err: fmt.Errorf(format, arguments...)}
}

// Is reports whether err has one of these statuses.
func Is(err error, statuses ...int) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && slices.Contains(statuses, e.Status)
}

// FromStore returns err with the status for an error of the client or the engine, unless err has
// a status already. It returns nil if err is nil.
func FromStore(err error) error {
	if _, ok := errors.AsType[*Error](err); ok || err == nil {
		return err
	}
	return &Error{Status: StatusOf(err), Err: err, Engine: true}
}

// StatusOf returns the status of an Error, or the status for an error of the client or the
// engine. It returns Unavailable for errors without a code, and for codes that are not in
// statuses: the same command may succeed later. A lost lease is such an error, unless a command
// runs under it; then the runner returns Lost or MaxHold.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return cmp.Or(statuses[codes.Of(err).Name], Unavailable)
}

var statuses = map[string]int{
	"lock-held":   Busy,
	"in-progress": Busy,

	"not-permitted": NotPermitted,
	"unsupported":   Config,
	"kind-mismatch": Config,
	"key-reused":    Config,
	"deadlock":      Config,
	"invalid":       Usage,

	"unknown":   Not,
	"expired":   Not,
	"revoked":   Not,
	"redeemed":  Not,
	"malformed": Usage,
}
