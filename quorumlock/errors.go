package quorumlock

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// ErrNoQuorum means that fewer than a majority of the members could take part: the others are down,
// silent, or in quarantine. It wraps driver.ErrUnavailable: nothing was granted, and members that
// return keep no trace of the request.
var ErrNoQuorum = fmt.Errorf("%w: no majority of the quorum's members", driver.ErrUnavailable)

// unclear returns the error of a request that no majority has decided, because the members in
// failed failed. If a member has carried it out, or a failed one may have, the outcome is unknown,
// and the error wraps no definite error of a single member. INVARIANT I10.
func (e *engine) unclear(failed []error, carriedOut bool) error {
	maybe := func(err error) bool { return !driver.Definite(err) }
	if !carriedOut && !slices.ContainsFunc(failed, maybe) {
		return e.missing(failed)
	}
	return fmt.Errorf("no majority of the quorum's members answered: %d of %d failed, the first with: %s",
		len(failed), len(e.members), failed[0].Error())
}

// errClosing means that the engine was closed before the members answered.
var errClosing = errors.New("the engine was closed before the members answered")

func isLost(err error) bool { return errors.Is(err, driver.ErrLost) }

// missing calls missing for the engine's members, without a quarantine.
func (e *engine) missing(errs []error) error { return missing(errs, e.quorum, len(e.members), 0) }

// missing returns the error for a missing majority. INVARIANT I10: if so many members have the same
// permanent error that no majority is possible, it is that error: a retry would be useless.
// Otherwise it is ErrNoQuorum, with the rest of a quarantine or the first member's error.
func missing(errs []error, quorum, of int, quarantined time.Duration) error {
	count := map[error]int{}
	for _, err := range errs {
		class := driver.Class(err)
		if count[class]++; driver.Permanent(err) && count[class] > of-quorum {
			return err
		}
	}
	switch {
	case quarantined > 0:
		return fmt.Errorf("%w: in quarantine for another %s, because members are new, were started again, or have lost their data: if the quorum is not in use yet, holdfast doctor --admit (Engine.Admit) ends that at once",
			ErrNoQuorum, quarantined.Round(time.Second))
	case len(errs) > 0:
		// The text only: one member's error is not the quorum's.
		return fmt.Errorf("%w: %d of %d did not take part, the first because: %s", ErrNoQuorum, len(errs), of, errs[0].Error())
	}
	return ErrNoQuorum
}
