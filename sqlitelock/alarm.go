package sqlitelock

import (
	"context"
	"database/sql"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// The alarm is a bell of its own, for processes that hold locks: other people's
// hand-overs, which may be thousands a second, do not wake them.

// alarmRest is how long who has heard the alarm rests, so that whoever may ring
// it cannot keep a core busy.
const alarmRest = 10 * time.Millisecond

// OnLoss implements driver.LossTeller.
func (e *Engine) OnLoss(told func(driver.Loss)) (stop func()) { return e.losses.OnLoss(told) }

// hearAlarm starts who hears the alarm, once. It does nothing after Close.
func (e *Engine) hearAlarm() {
	e.alarmed.Do(func() {
		if e.enter(context.Background()) != nil {
			return
		}
		var last int64
		_, err := one(e.read.lastBroken, nil, &last)
		if err != nil {
			e.users.Done() // losses are found by renewals
			return
		}
		r := &ear{bell: e.alarm}
		r.messages, _ = e.newWatcher()
		r.attach()
		r.last = e.alarm.read()
		go func() {
			defer e.users.Done()
			defer r.close()
			e.tellLosses(r, last)
		}()
	})
}

// tellLosses tells of leases that were broken after the one with the number
// last, whenever the alarm rings, until Close.
func (e *Engine) tellLosses(r *ear, last int64) {
	for {
		lost, ok := r.wait(e.closing)
		if !ok {
			return
		}
		before := r.last
		if r.last = r.bell.read(); !lost && r.last == before {
			continue
		}
		if r.poll != nil {
			r.attach()
		}
		last = e.tellSince(last)
		select {
		case <-time.After(alarmRest):
		case <-e.closing:
			return
		}
	}
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
// the last number. If that cannot be read renewals find out.
func (e *Engine) tellSince(last int64) int64 {
	casualties, err := all(e.read.brokenSince, []any{last}, (*casualty).columns)
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

// A brokenRow is one row of the table broken.
type brokenRow struct {
	driver.Broken
	holder string
}

func (b *brokenRow) columns() []any {
	return []any{&b.ID, &b.LeaseID, &b.Token, &b.Permits, &b.holder, &b.Author, &b.Reason, &b.Ago}
}

// broken reads what is remembered of a name with stmt.
func broken(stmt *sql.Stmt, name, bootID string, now instant) (known []driver.Broken, err error) {
	rows, err := all(stmt, []any{name, bootID, now.boot, int64(now.micros)}, (*brokenRow).columns)
	for _, row := range rows {
		if row.Ago >= driver.BreakMemory {
			continue
		}
		row.Holder, row.Ago = describe(row.holder), max(row.Ago, 0)
		known = append(known, row.Broken)
	}
	return known, err
}
