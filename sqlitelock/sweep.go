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

// sweep forgets what is over, once in sweepEvery rows that were added and with
// the first of each engine. INVARIANT I11.
func (e *Engine) sweep(t *tx) error {
	before := e.added
	e.added += t.added
	if t.added == 0 || before > 0 && before/sweepEvery == e.added/sweepEvery {
		return nil
	}
	if err := run(t.sql.sweepLeases, t.bootID, t.now.boot, sweepRows); err != nil {
		return err
	}
	if err := run(t.sql.sweepPlaces, t.bootID, t.now.boot, sweepRows); err != nil {
		return err
	}
	if err := run(t.sql.sweepCancelled, t.bootID, t.now.boot, sweepRows); err != nil {
		return err
	}
	if err := run(t.sql.sweepRecords, t.bootID, t.now.boot, sweepRecords, int64(t.now.micros)); err != nil {
		return err
	}
	forget := int64(t.now.micros) - driver.BreakMemory.Microseconds()
	if err := run(t.sql.sweepBroken, forget, sweepRows); err != nil {
		return err
	}
	// The age is counted from the token, not from its grant, so that even one
	// that was ahead of the clock is forgotten only TokenMemory behind it.
	old := int64(t.now.micros) - driver.TokenMemory.Microseconds()
	return run(t.sql.sweepTokens, old, sweepRows)
}
