package mem

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// Duties shown here. Only the holder of the live lease may complete the work (INVARIANT I4):
// the record and the end of the lease are one step, so that no other client begins the work
// between them. A repeat has no further effect (I6).

// A record is the result of do-once work.
type record struct {
	by     lockinfo.LeaseID // the lease that it has ended; empty if it was stored with Keep
	data   []byte
	expiry time.Time // when its retention ends
}

// Complete implements driver.Recorder.
func (e *Engine) Complete(ctx context.Context, req driver.CompleteRequest) error {
	return e.step(ctx, func(now time.Time) error {
		l := e.settleLocked(req.Name, now)
		if l.record != nil && l.record.by == req.LeaseID {
			return nil // INVARIANT I6: a repeat, which does not lengthen the retention
		}
		h := l.held(req.LeaseID)
		if h == nil {
			return driver.ErrLost // INVARIANT I4
		}
		l.record = &record{data: slices.Clone(req.Record), expiry: now.Add(req.Retention)}
		if req.Keep {
			return nil
		}
		l.record.by = req.LeaseID
		l.end(h)
		l.ledger.leased(lockinfo.HistoryCompleted, h, now)
		e.serveLocked(l, now) // this also removes the places with Once
		return nil
	})
}

// Recall implements driver.Recorder. It returns a copy.
func (e *Engine) Recall(ctx context.Context, name string) (found driver.Record, ok bool, err error) {
	err = e.step(ctx, func(now time.Time) error {
		r := e.settleLocked(name, now).record
		if ok = r != nil; ok {
			found = driver.Record{Data: slices.Clone(r.data), ExpiresIn: r.expiry.Sub(now)}
		}
		return nil
	})
	return found, ok, err
}

// DescribeRecord implements driver.Recorder.
func (e *Engine) DescribeRecord(ctx context.Context, name string) (info driver.RecordInfo, found bool, err error) {
	err = e.step(ctx, func(now time.Time) error {
		info, found = e.describeRecordLocked(name, now)
		return nil
	})
	return info, found, err
}

// describeRecordLocked describes the record of a name. It creates no name.
func (e *Engine) describeRecordLocked(name string, now time.Time) (info driver.RecordInfo, found bool) {
	l := e.locks[name]
	if l == nil || l.record == nil || !now.Before(l.record.expiry) {
		return info, false
	}
	r := l.record
	head := slices.Clone(r.data[:min(len(r.data), driver.RecordHead)])
	return driver.RecordInfo{Name: name, Head: head, Length: len(r.data), ExpiresIn: r.expiry.Sub(now)}, true
}

// ListRecords implements driver.Recorder.
func (e *Engine) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
	return driver.Listed(func() ([]driver.RecordInfo, error) {
		return e.describeRecords(ctx, prefix)
	})
}

// describeRecords describes the records of names with the prefix, as of one instant.
func (e *Engine) describeRecords(ctx context.Context, prefix string) ([]driver.RecordInfo, error) {
	return answer(ctx, e, func(now time.Time) (all []driver.RecordInfo, err error) {
		for name := range e.locks {
			if strings.HasPrefix(name, prefix) {
				if info, found := e.describeRecordLocked(name, now); found {
					all = append(all, info)
				}
			}
		}
		return all, nil
	})
}

// Forget implements driver.Recorder. Leases and places stay: waiters continue to wait.
func (e *Engine) Forget(ctx context.Context, name string) (bool, error) {
	return answer(ctx, e, func(now time.Time) (bool, error) {
		l := e.settleLocked(name, now)
		found := l.record != nil
		l.record = nil
		return found, nil
	})
}
