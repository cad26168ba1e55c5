package quorumlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// ErrNoQuorum says that fewer than a majority of the members could take part:
// the others are down, silent, or in quarantine. It wraps
// driver.ErrUnavailable: nothing was granted, and nothing is left behind at
// members that come back.
var ErrNoQuorum = fmt.Errorf("%w: no majority of the quorum's members", driver.ErrUnavailable)

// undecided is the error of a request that some members may have carried out. It
// leaves the outcome unknown: it wraps no definite error, though those of single
// members may have been definite.
func (e *Engine) undecided(failed []error) error {
	return fmt.Errorf("no majority of the quorum's members answered: %d of %d failed, the first with: %s",
		len(failed), len(e.members), failed[0].Error())
}

// errClosing: Close came before the answer.
var errClosing = errors.New("the engine was closed before the members answered")

func isLost(err error) bool { return errors.Is(err, driver.ErrLost) }

// missing is missing of the engine's members, none of which is in quarantine.
func (e *Engine) missing(errs []error) error { return missing(errs, e.quorum, len(e.members), 0) }

// missing describes why there is no majority. INVARIANT I10: if so many members
// give the same permanent reason that there cannot be one, it is that reason, and
// to ask again would be of no use. Otherwise it is ErrNoQuorum, by what there is to
// say: how long a quarantine lasts, or what the first that failed has met.
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
		return fmt.Errorf("%w: in quarantine for another %s, because members are new or have lost their data: if nobody uses the quorum yet, holdfast doctor --admit (Engine.Admit) ends that at once",
			ErrNoQuorum, quarantined.Round(time.Second))
	case len(errs) > 0:
		// The text only: what one member says is not what the quorum says.
		return fmt.Errorf("%w: %d of %d did not take part, the first because: %s", ErrNoQuorum, len(errs), of, errs[0].Error())
	}
	return ErrNoQuorum
}
