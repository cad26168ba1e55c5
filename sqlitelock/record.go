package sqlitelock

import (
	"context"
	"database/sql"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
)

// Complete implements driver.Recorder. The record outlives a power cut, so
// that what was done once is not done again after it.
func (e *Engine) Complete(ctx context.Context, req driver.CompleteRequest) error {
	err := e.transactDurably(ctx, func(t *tx) error {
		v, err := t.settle(req.Name, req.LeaseID)
		if err != nil {
			return err
		}
		var by driver.LeaseID
		if v.Recorded {
			if _, err := one(t.sql.completedBy, []any{req.Name, t.bootID, t.now.boot, int64(t.now.micros)}, &by); err != nil {
				return err
			}
		}
		switch {
		case by == req.LeaseID:
			return nil // INVARIANT I6: a repeat
		case v.own == 0:
			return t.refuse(driver.ErrLost) // INVARIANT I4
		}
		if err := t.complete(req); err != nil {
			return err
		}
		return t.serveNext(req.Name, v)
	})
	if err == nil {
		e.losses.Ended()
	}
	return err
}

// complete writes a record and ends the lease.
func (t *tx) complete(req driver.CompleteRequest) error {
	record := req.Record
	if record == nil {
		record = []byte{} // not NULL
	}
	wall := int64(t.now.micros) + ceilMicros(req.Retention)
	if err := run(t.sql.complete, req.Name, req.LeaseID, t.bootID, t.now.after(req.Retention), wall, record); err != nil {
		return err
	}
	t.added++
	return run(t.sql.end, req.Name, t.bootID, req.LeaseID, t.now.boot)
}

// Recall implements driver.Recorder. It does not wait for writers.
func (e *Engine) Recall(ctx context.Context, name string) (r driver.Record, found bool, err error) {
	err = e.query(ctx, func() error {
		now, err := e.clock.now()
		if err != nil {
			return err
		}
		r.Data, r.ExpiresIn, found, err = recall(e.read.recall, name, e.clock.bootID, now)
		return err
	})
	if err != nil {
		return driver.Record{}, false, err
	}
	return r, found, nil
}

// recall reads the record of a name with stmt.
func recall(stmt *sql.Stmt, name, bootID string, now instant) (data []byte, left time.Duration, found bool, err error) {
	found, err = one(stmt, []any{name, bootID, now.boot, int64(now.micros)}, &data, &left)
	return data, left, found, err
}

// Forget implements driver.Recorder.
func (e *Engine) Forget(ctx context.Context, name string) (found bool, err error) {
	err = e.transact(ctx, func(t *tx) (err error) {
		found, err = changed(t.sql.forget, name, t.bootID, t.now.boot, int64(t.now.micros))
		return err
	})
	return found && err == nil, err
}

// ceilMicros rounds up: a record may vanish late, never early.
func ceilMicros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }
