package sqlitelock

import (
	"math"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The alarm is a second bell, for processes that hold locks: the hand-overs of other
// processes, of which there may be thousands a second, do not wake them.

// alarmRest is how long the listener pauses after the alarm, so that a process that rings it
// constantly does not keep a core busy.
const alarmRest = 10 * time.Millisecond

// OnLoss implements driver.LossTeller.
func (e *engine) OnLoss(listener func(driver.Loss)) (stop func()) { return e.losses.OnLoss(listener) }

// hearAlarm starts the listener to the alarm, once. It reports leases that are broken from
// now on.
func (e *engine) hearAlarm() {
	e.alarmed.Do(func() {
		var last int64 // number of the latest lease that was reported
		e.attend(e.alarm, alarmRest, func() {
			if e.read(func(r reader) error { _, err := r.sql.one(lastBrokenSQL, nil, &last); return err }) != nil {
				last = math.MaxInt64 // renewals find the losses
			}
		}, func(func(lockinfo.LeaseID) bool) { last = e.reportSince(last) })
	})
}

// reportSince reports the leases that were broken after number last, and returns the new last
// number. If it cannot read them, renewals find the losses.
func (e *engine) reportSince(last int64) int64 {
	type broken struct {
		driver.Loss
		seq    int64
		reason lockinfo.BrokenError
	}
	var all []broken
	err := e.read(func(r reader) (err error) {
		all, err = scanAll(r.sql, brokenSinceSQL, []any{last}, func(b *broken) []any {
			return []any{&b.seq, &b.Name, &b.LeaseID, &b.reason.Author, &b.reason.Reason}
		})
		return err
	})
	if err != nil {
		return last
	}
	for _, b := range all {
		b.Err = &b.reason
		e.losses.Tell(b.Loss)
		last = b.seq
	}
	return last
}
