package door

import (
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/limit"
	"github.com/holdfast-locks/holdfast/internal/codes"
)

// Told returns err as the caller may see it. An error of the store may contain its address,
// which only callers who may read every name see (see GET /v1/store). The code stays the same.
func (r *Request) Told(err error) error {
	if err == nil || r.Caller == nil || r.Caller.MayAll(caller.Read, "") {
		return err
	}
	if errors.As(err, new(*Refusal)) || errors.As(err, new(*limit.Exceeded)) {
		return err
	}
	switch codes.Of(err).Name {
	case codes.Of(driver.ErrUnavailable).Name:
		return errAway
	case codes.Of(driver.ErrPermission).Name:
		return errDenied
	case codes.Of(driver.ErrOutcomeUnknown).Name, "":
		return errSilent
	}
	return err
}

var (
	errAway   = fmt.Errorf("%w: the server's store does not serve now: nothing was done", driver.ErrUnavailable)
	errDenied = fmt.Errorf("%w: the server's store refuses this to the server", driver.ErrPermission)
	errSilent = errors.New("the server's store has not answered: this may have been done, or may be done later")
)
