package sqlitelock

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Complete implements driver.Recorder. The record survives a power cut, so that the work is
// not done again.
func (e *engine) Complete(ctx context.Context, req driver.CompleteRequest) error {
	err := e.transactDurably(ctx, func(t *tx) error {
		v, err := t.settle(req.Name, req.LeaseID)
		if err != nil {
			return err
		}
		var by lockinfo.LeaseID
		if v.Recorded {
			if _, err := t.sql.one(completedBySQL, []any{req.Name, t.bootID, t.now.boot, int64(t.now.micros)}, &by); err != nil {
				return err
			}
		}
		switch {
		case by == req.LeaseID:
			return nil // INVARIANT I6: a repeat
		case v.own == 0:
			return t.refuse(driver.ErrLost) // INVARIANT I4
		case req.Keep:
			return t.record(req, "")
		}
		if err := t.complete(req); err != nil {
			return err
		}
		return t.serveNext(req.Name, v)
	})
	if err == nil && !req.Keep {
		e.losses.Ended()
	}
	return err
}

// record writes a record for the lease by, or for no lease if by is empty.
func (t *tx) record(req driver.CompleteRequest, by lockinfo.LeaseID) error {
	record := append([]byte{}, req.Record...) // not NULL
	wall := int64(t.now.micros) + ceilMicros(req.Retention)
	t.added++
	return t.sql.run(recordSQL, req.Name, by, t.bootID, t.now.after(req.Retention), wall, record)
}

// complete writes a record and ends the lease.
func (t *tx) complete(req driver.CompleteRequest) error {
	if err := t.record(req, req.LeaseID); err != nil {
		return err
	}
	_, err := t.endLeases(lockinfo.HistoryCompleted, endSQL, req.Name, t.bootID, req.LeaseID, t.now.boot)
	return err
}

// Recall implements driver.Recorder. It does not wait for writers.
func (e *engine) Recall(ctx context.Context, name string) (record driver.Record, found bool, err error) {
	record, err = answer(ctx, e.query, func(r reader) (record driver.Record, err error) {
		record.Data, record.ExpiresIn, found, err = r.recall(name)
		return record, err
	})
	return record, found && err == nil, err
}

// recall reads the record of a name.
func (r *reader) recall(name string) (data []byte, left time.Duration, found bool, err error) {
	found, err = r.sql.one(recallSQL, []any{name, r.bootID, r.now.boot, int64(r.now.micros)}, &data, &left)
	return data, left, found, err
}

// DescribeRecord implements driver.Recorder. It does not wait for writers.
func (e *engine) DescribeRecord(ctx context.Context, name string) (info driver.RecordInfo, found bool, err error) {
	info, err = answer(ctx, e.query, func(r reader) (info driver.RecordInfo, err error) {
		found, err = r.sql.one(describeRecordSQL, []any{name, r.bootID, r.now.boot, int64(r.now.micros), driver.RecordHead}, recordColumns(&info)...)
		return info, err
	})
	return info, found && err == nil, err
}

// pageRecords is the number of records that ListRecords reads in one step. SQLite reads a whole
// record to return its beginning.
const pageRecords = 32

// ListRecords implements driver.Recorder, in the order of the names. It does not wait for writers,
// and writers do not wait for it.
func (e *engine) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
	return paged(ctx, e, prefix, listing[driver.RecordInfo]{
		size: pageRecords,
		read: func(r reader, after string) ([]driver.RecordInfo, error) {
			args := []any{prefix, r.bootID, r.now.boot, int64(r.now.micros), driver.RecordHead, after, pageRecords}
			return scanAll(r.sql, pageRecordsSQL, args, recordColumns)
		},
		name:  func(r driver.RecordInfo) string { return r.Name },
		shown: func(r driver.RecordInfo) bool { return r.ExpiresIn > 0 },
	})
}

func recordColumns(r *driver.RecordInfo) []any {
	return []any{&r.Name, &r.Head, &r.Length, &r.ExpiresIn}
}

// Forget implements driver.Recorder.
func (e *engine) Forget(ctx context.Context, name string) (found bool, err error) {
	return answer(ctx, e.transact, func(t *tx) (bool, error) {
		return t.sql.changed(forgetSQL, name, t.bootID, t.now.boot, int64(t.now.micros))
	})
}

// ceilMicros returns d in microseconds, rounded up: a record may expire late, never early.
func ceilMicros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }
