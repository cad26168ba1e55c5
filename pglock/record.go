package pglock

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-locks/holdfast/driver"
)

// Complete implements driver.Recorder.
func (e *engine) Complete(ctx context.Context, req driver.CompleteRequest) error {
	err := e.changeLease(ctx, "complete", req.Name, string(req.LeaseID), notNull(req.Record), micros(req.Retention), req.Keep, e.opts.History)
	if err == nil && !req.Keep {
		e.losses.Ended()
	}
	return err
}

// notNull returns b for a column that is NOT NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Recall implements driver.Recorder.
func (e *engine) Recall(ctx context.Context, name string) (r driver.Record, found bool, err error) {
	err = e.query(ctx, waiting, "SELECT data, expires_in FROM "+e.name+".recall($1)", []any{name}, func(rows pgx.Rows) error {
		var left int64
		found = true
		err := rows.Scan(&r.Data, &left)
		r.ExpiresIn = duration(left)
		return err
	})
	return r, found && err == nil, err
}

// Forget implements driver.Recorder.
func (e *engine) Forget(ctx context.Context, name string) (found bool, err error) {
	err = e.call(ctx, waiting, "forget", []any{name}, &found)
	return found, err
}

// DescribeRecord implements driver.Recorder.
func (e *engine) DescribeRecord(ctx context.Context, name string) (r driver.RecordInfo, found bool, err error) {
	page, err := e.records(ctx, name, "", 1)
	if err != nil || len(page) == 0 || page[0].Name != name || page[0].ExpiresIn <= 0 {
		return r, false, err
	}
	return page[0], true, nil
}

// records describes records in the order of their names: those at or after from, and after after.
func (e *engine) records(ctx context.Context, from, after string, limit int32) (page []driver.RecordInfo, err error) {
	err = e.query(ctx, waiting, "SELECT name, head, length, expires_in FROM "+e.name+".records($1, $2, $3)", []any{from, after, limit}, func(rows pgx.Rows) error {
		var r driver.RecordInfo
		var left int64
		err := rows.Scan(&r.Name, &r.Head, &r.Length, &left)
		r.ExpiresIn = duration(left)
		page = append(page, r)
		return err
	})
	return page, err
}
