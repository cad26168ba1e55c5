package enginetest

import (
	"errors"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

func lossRequirements() []Requirement {
	return []Requirement{
		{"BreakTellsHolder", "", both(canBreak, canTellLosses), breakTells,
			"Break must report to the engine of the holder which lease has ended, by whom and why, and name no other lease"},
		{"BreakTellsHolderAcrossEngines", "", both(canBreak, canTellLosses, hasJoin), func(t *T) { breakTellsEach(t.join(), t) },
			"Break must tell the engines of holders in other processes"},
		{"LossesStop", "", both(canBreak, canTellLosses), lossesStop,
			"once stop has returned no message about a loss may follow"},
	}
}

func canTellLosses(t *T) bool { return t.Features.LossTeller != nil }

// listen returns a channel of the losses that the engine reports, and a function that stops the
// reports.
func (t *T) listen() (<-chan driver.Loss, func()) {
	losses := make(chan driver.Loss, 100)
	stop := t.Features.LossTeller.OnLoss(func(l driver.Loss) { losses <- l })
	t.Cleanup(stop)
	return losses, stop
}

// listensByNow waits until an engine that has granted a lease must be listening for losses.
func (t *T) listensByNow() { time.Sleep(t.units(2) + driver.LossStart) }

// hears fails the run unless the engine soon reports the loss of l.
func (t *T) hears(losses <-chan driver.Loss, l lease) {
	t.Helper()
	for limit := time.After(t.units(4)); ; {
		select {
		case loss := <-losses:
			if loss.LeaseID == "" && loss.Err == nil {
				continue // a report without details
			}
			t.want(loss.Name == l.Name && loss.LeaseID == l.LeaseID, "reported the loss of %+v, want lease %s of %q", loss, l.LeaseID, l.Name)
			var broken *lockinfo.BrokenError
			t.want(errors.Is(loss.Err, driver.ErrLost) && errors.As(loss.Err, &broken) && broken.Author == author && broken.Reason == reason,
				"reported the loss with error %v, want ErrLost with author and reason", loss.Err)
			return
		case <-limit:
			t.Errorf("no report of the loss of %q within %s", l.Name, t.units(4))
			return
		}
	}
}

// silent fails the run if the engine has reported a loss with a lease ID.
func (t *T) silent(losses <-chan driver.Loss) {
	t.Helper()
	time.Sleep(t.slack())
	for {
		select {
		case loss := <-losses:
			t.want(loss.LeaseID == "", "reported %+v, want nothing more", loss)
		default:
			return
		}
	}
}

func breakTells(t *T) { breakTellsEach(t, t) }

// breakTellsEach checks that the engine of holder receives t's breaks.
func breakTellsEach(holder, t *T) {
	losses, _ := holder.listen()
	l, other := holder.take("a", t.units(40)), holder.take("other", t.units(40))
	holder.listensByNow()
	t.breaksOnly(breakOf(l), l)
	holder.hears(losses, l)
	t.breaksOnly(older(breakOf(other)), other)
	holder.hears(losses, other)
	holder.silent(losses)
}

func lossesStop(t *T) {
	losses, stop := t.listen()
	kept, _ := t.listen()
	l := t.take("a", t.units(40))
	t.listensByNow()
	stop()
	stop()
	t.mustBreak(breakOf(l))
	t.hears(kept, l)
	t.silent(losses)
}
