package sqlitelock

import (
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The sweep's bounds. Each added row becomes at most one expired row of each kind. After sweepEvery
// added rows, up to sweepRows of each kind are deleted, so that the number of expired rows shrinks
// while there is work. Records may be large, so fewer are deleted.
const (
	sweepEvery   = 16
	sweepRows    = 64
	sweepRecords = 2 * sweepEvery
)

// sweep deletes expired rows, once for sweepEvery added rows. INVARIANT I11: if engines add one row
// each and are closed, as those of a command are, one in sweepEvery of them sweeps; see
// setting.added.
func (e *engine) sweep(t *tx) error {
	before := e.added
	e.added += t.added
	if before/sweepEvery == e.added/sweepEvery {
		return nil
	}
	boot, wall := t.now.boot, int64(t.now.micros)
	old := wall - driver.TokenMemory.Microseconds()
	if err := t.sweepLeases(); err != nil {
		return err
	}
	if _, err := t.endPlaces(sweepPlacesSQL, t.bootID, boot, sweepRows); err != nil {
		return err
	}
	for _, step := range []struct {
		query string
		args  []any
	}{
		{sweepCancelledSQL, []any{t.bootID, boot, sweepRows}},
		{sweepRecordsSQL, []any{t.bootID, boot, sweepRecords, wall}},
		{sweepBrokenSQL, []any{wall - driver.BreakMemory.Microseconds(), sweepRows}},
		{sweepEventsSQL, []any{wall - driver.HistoryMemory.Microseconds(), sweepRows}},
		// The age is that of the token, not of its grant: a token ahead of the clock is kept
		// longer.
		{sweepTokensSQL, []any{old, sweepRows, hour(old)}},
	} {
		if err := t.sql.run(step.query, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// sweepLeases deletes the expired leases among the next sweepRows leases. It reads four leases for
// each added row, and so reads the whole table while a quarter as many are added.
func (t *tx) sweepLeases() error {
	var name string
	var mode modes.Kind
	var id lockinfo.LeaseID
	bounds := []any{t.bootID, t.now.boot, sweepRows}
	more, err := t.sql.one(lastSweptSQL, bounds, &name, &mode, &id)
	if err == nil {
		_, err = t.endLeases(lockinfo.HistoryExpired, sweepLeasesSQL, bounds...)
	}
	if err == nil && more {
		err = t.sql.run(noteSweptSQL, name, mode, id)
	}
	return err
}
