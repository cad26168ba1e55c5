package sqlitelock

import (
	"math"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// The alarm is a bell of its own, for processes that hold locks: other people's
// hand-overs, which may be thousands a second, do not wake them.

// alarmRest is how long the listener rests after it has heard the alarm, so that
// nobody can keep a core busy by ringing it.
const alarmRest = 10 * time.Millisecond

// OnLoss implements driver.LossTeller.
func (e *Engine) OnLoss(told func(driver.Loss)) (stop func()) { return e.losses.OnLoss(told) }

// hearAlarm starts the listener to the alarm, once, which tells of leases that
// are broken from now on.
func (e *Engine) hearAlarm() {
	e.alarmed.Do(func() {
		var last int64 // number of the latest lease that was told of
		e.attend(e.alarm, alarmRest, func() {
			if e.read(func(c *conn) error { _, err := c.one(lastBrokenSQL, nil, &last); return err }) != nil {
				last = math.MaxInt64 // renewals find out
			}
		}, func(func(driver.LeaseID) bool) { last = e.tellSince(last) })
	})
}

// A casualty is a lease that was broken.
type casualty struct {
	seq            int64
	name           string
	id             driver.LeaseID
	author, reason string
}

func (c *casualty) columns() []any { return []any{&c.seq, &c.name, &c.id, &c.author, &c.reason} }

// tellSince tells of the leases that were broken after number last, and returns
// the last number. If they cannot be read, the renewals find out.
func (e *Engine) tellSince(last int64) int64 {
	var casualties []casualty
	err := e.read(func(c *conn) (err error) {
		casualties, err = all(c, brokenSinceSQL, []any{last}, (*casualty).columns)
		return err
	})
	if err != nil {
		return last
	}
	for _, c := range casualties {
		e.losses.Tell(driver.Loss{
			Name: c.name, LeaseID: c.id, Err: &driver.BrokenError{Author: c.author, Reason: c.reason},
		})
		last = c.seq
	}
	return last
}
