package sqlitelock

import "github.com/holdfast-locks/holdfast/driver"

// The sweep's bounds. A row that a request adds leaves at most one of each
// kind behind, and every sweepEvery such rows up to sweepRows of each are
// taken away, so that litter shrinks wherever there is work. Records may be
// large, so they go more slowly.
const (
	sweepEvery   = 16
	sweepRows    = 64
	sweepRecords = 2 * sweepEvery
)

// sweep forgets what is over, once in sweepEvery rows that were added. INVARIANT
// I11: an engine that adds one row and is closed, as that of a command is, sweeps
// once in sweepEvery times; see setting.added.
func (e *Engine) sweep(t *tx) error {
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
	// What is remembered for a day is forgotten by turns.
	past := sweeping{sweepBrokenSQL, []any{wall - driver.BreakMemory.Microseconds(), sweepRows}}
	if e.added/sweepEvery%2 == 0 {
		past = sweeping{sweepEventsSQL, []any{wall - driver.HistoryMemory.Microseconds(), sweepRows}}
	}
	for _, step := range []sweeping{
		{sweepCancelledSQL, []any{t.bootID, boot, sweepRows}},
		{sweepRecordsSQL, []any{t.bootID, boot, sweepRecords, wall}},
		past,
		// The age is counted from the token, not from its grant, so that even one
		// that was ahead of the clock is forgotten only TokenMemory behind it.
		{sweepTokensSQL, []any{old, sweepRows, hour(old)}},
	} {
		if err := t.sql.run(step.query, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// A sweeping is one statement of a sweep.
type sweeping struct {
	query string
	args  []any
}

// sweepLeases forgets those leases that are over among the next sweepRows of all.
// It looks at four leases for each that is granted, so that the rows of a file
// are gone through while a quarter as many are added.
func (t *tx) sweepLeases() error {
	var name string
	var mode driver.Mode
	var id driver.LeaseID
	bounds := []any{t.bootID, t.now.boot, sweepRows}
	more, err := t.sql.one(lastSweptSQL, bounds, &name, &mode, &id)
	if err == nil {
		_, err = t.endLeases(driver.EventExpired, sweepLeasesSQL, bounds...)
	}
	if err == nil && more {
		err = t.sql.run(noteSweptSQL, name, mode, id)
	}
	return err
}
