package pglock

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// A state is the state of one name, as the function state describes it.
type state struct {
	Name        string `json:"name"`
	LastToken   uint64 `json:"last_token"`
	QueueLength int    `json:"queue_length"`
	Leases      []row  `json:"leases"`
	Queue       []row  `json:"queue"`
}

func (s *state) lock() lockinfo.LockState {
	l := lockinfo.LockState{Name: s.Name, LastToken: s.LastToken, QueueLength: s.QueueLength}
	for _, r := range s.Leases {
		l.Mode = l.Mode.Plus(r.mode())
		l.Holders = append(l.Holders, r.holding())
	}
	for _, r := range s.Queue {
		h := r.holding()
		l.Queue = append(l.Queue, lockinfo.Place{LeaseID: h.LeaseID, Mode: h.Mode, Holder: h.Holder, Since: h.Since, ExpiresIn: h.ExpiresIn})
	}
	return l
}

// Inspect implements driver.Engine. It does not wait for other requests, and does not hand a lock
// over. It describes the first driver.ShownPlaces of a queue.
func (e *engine) Inspect(ctx context.Context, name string) (lockinfo.LockState, error) {
	var found []state
	err := e.call(ctx, waiting, "state", []any{[]string{name}, int32(driver.ShownPlaces)}, inJSON(&found))
	if err != nil || len(found) == 0 {
		return lockinfo.LockState{Name: name}, err
	}
	return found[0].lock(), nil
}

// List implements driver.Lister, in the order of the names, without the queues.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[lockinfo.LockState, error] {
	return func(yield func(lockinfo.LockState, error) bool) {
		for last := ""; ; {
			var page []state
			var next *string
			if err := e.call(ctx, waiting, "page", []any{prefix, last}, inJSON(&page), &next); err != nil {
				yield(lockinfo.LockState{}, err)
				return
			}
			for _, s := range page {
				if l := s.lock(); (len(l.Holders) > 0 || l.QueueLength > 0) && !yield(l, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			last = *next
		}
	}
}

// pageRecords is how many records ListRecords reads in one step.
const pageRecords = 500

// ListRecords implements driver.Recorder, in the order of the names.
func (e *engine) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
	return func(yield func(driver.RecordInfo, error) bool) {
		for last, more := "", true; more; {
			page, err := e.records(ctx, prefix, last, pageRecords)
			if err != nil {
				yield(driver.RecordInfo{}, err)
				return
			}
			more = len(page) == pageRecords
			for _, r := range page {
				if last = r.Name; !strings.HasPrefix(last, prefix) {
					return // names are in order: no later one has the prefix
				}
				if r.ExpiresIn > 0 && !yield(r, nil) {
					return
				}
			}
		}
	}
}
