package wire

import (
	"errors"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Code names an error to programs.
type Code struct {
	Name   string // lower-case words with hyphens between
	Status int    // the status of the HTTP response with this code
	Err    error  // the sentinel that callers test for
}

// Underscored returns the name with underscores, as the refusals of oncehttp and httpfence, and
// the output of the command, have it.
func (c Code) Underscored() string { return strings.ReplaceAll(c.Name, "-", "_") }

// Codes is a table of codes. If an error wraps several of the sentinels, the first in the table
// counts.
type Codes []Code

// Of returns the code of an error. It is the zero Code if the table has none.
func (t Codes) Of(err error) Code {
	for _, c := range t {
		if errors.Is(err, c.Err) {
			return c
		}
	}
	return Code{}
}

// DriverCodes returns the codes of the errors of package driver, which an engine must
// distinguish. Package internal/codes has the codes of all errors.
//
// 503 means that nothing was done, and the same request may succeed later. 504 means that the
// request may have been carried out. 410 means that the lease has ended.
func DriverCodes() Codes {
	return Codes{
		{"broken", 410, driver.ErrBroken}, // before ErrLost, which comes with it
		{"lost", 410, driver.ErrLost},
		{"not-permitted", 403, driver.ErrPermission},
		{"unsupported", 501, driver.ErrUnsupported},
		{"kind-mismatch", 409, driver.ErrKindMismatch},
		{"invalid", 400, driver.ErrInvalid},
		{"store-unavailable", 503, driver.ErrUnavailable}, // before ErrClosed, which comes with it if a file was deleted
		{"closed", 503, driver.ErrClosed},
		{"outcome-unknown", 504, driver.ErrOutcomeUnknown},
	}
}
