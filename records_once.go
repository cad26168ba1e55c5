package holdfast

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
	"github.com/holdfast-locks/holdfast/internal/oncerecord"
)

// A OnceRecord is the state of a do-once key, without its result, or of a schedule.
type OnceRecord struct {
	Key       string
	State     OnceState
	Holder    Holder        // if in progress; of a schedule, in List, the holder that runs it, or zero
	Since     time.Duration // if in progress: how long ago it began; 0 if the store does not know
	Token     uint64        // if done: the token of the run; 0 if Once has not stored the result
	Length    int           // if done: the length of the result, in bytes
	ExpiresIn time.Duration // until the result expires, or the lease of the work unless it is extended

	Schedule *ScheduleRecord // if it is a schedule; else nil
}

// Once reports the state of a do-once key. It requests the length of the result only:
// see Result. A key whose name is held as a lock is in progress too.
func (r Records) Once(ctx context.Context, key string) (OnceRecord, error) {
	return consult(ctx, r.client, "status of", key, func(ctx context.Context, recorder driver.Recorder) (OnceRecord, error) {
		e, err := describe(ctx, recorder, key)
		if err != nil || e.State != OnceAbsent {
			return e, err
		}
		lock, err := r.client.inspect(ctx, key)
		if err != nil {
			return e, err
		}
		if live := lock.Live(); len(live) > 0 {
			return inProgress(key, live[0]), nil
		}
		return describe(ctx, recorder, key) // the work may have been completed between the two requests
	})
}

// Of is Once for a lock that Inspect has just returned, with one request less. It reads the
// record after the lock: work that is completed between the two is seen as done.
func (r Records) Of(ctx context.Context, lock LockState) (OnceRecord, error) {
	return consult(ctx, r.client, "status of", lock.Name, func(ctx context.Context, recorder driver.Recorder) (OnceRecord, error) {
		e, err := describe(ctx, recorder, lock.Name)
		if live := lock.Live(); err == nil && e.State == OnceAbsent && len(live) > 0 {
			e = inProgress(lock.Name, live[0])
		}
		return e, err
	})
}

func describe(ctx context.Context, recorder driver.Recorder, key string) (OnceRecord, error) {
	r, found, err := recorder.DescribeRecord(ctx, key)
	if err != nil || !found {
		return OnceRecord{Key: key}, ask.Harmless(ctx, err)
	}
	return doneEntry(r), nil
}

// List yields the do-once keys that begin with prefix and are done or in
// progress, in no particular order; all of them if prefix is empty. A key whose
// work begins or whose result is forgotten meanwhile may be among them or not. Results are
// not read. An error ends the sequence. Nothing but ctx bounds how long it takes.
func (r Records) List(ctx context.Context, prefix string) iter.Seq2[OnceRecord, error] {
	return func(yield func(OnceRecord, error) bool) {
		if err := r.client.onceList(ctx, prefix, yield); err != nil {
			yield(OnceRecord{}, opError("list", prefix, ask.Harmless(ctx, err)))
		}
	}
}

// onceList lists work in progress first, and records second, so that it does not miss work that
// is completed in between.
func (c *Client) onceList(ctx context.Context, prefix string, yield func(OnceRecord, error) bool) error {
	if err := c.check(); err != nil {
		return err
	}
	lister, records := c.features.Lister, c.features.Recorder
	if lister == nil || records == nil {
		return fmt.Errorf("listing do-once work is %w", ErrUnsupported)
	}
	working := map[string]OnceRecord{}
	for lock, err := range lister.List(ctx, prefix) {
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(lock.Holders, func(h Holding) bool { return h.Holder.Once && !h.Released }); i >= 0 {
			working[lock.Name] = inProgress(lock.Name, lock.Holders[i])
		}
	}
	for r, err := range records.ListRecords(ctx, prefix) {
		if err != nil {
			return err
		}
		e := doneEntry(r)
		if e.State == OnceScheduled {
			e.Holder, e.Since = working[r.Name].Holder, working[r.Name].Since
		}
		delete(working, r.Name)
		if !yield(e, nil) {
			return nil
		}
	}
	for _, e := range working {
		if !yield(e, nil) {
			return nil
		}
	}
	return nil
}

func inProgress(key string, h Holding) OnceRecord {
	return OnceRecord{Key: key, State: OnceInProgress, Holder: h.Holder, Since: h.Since, ExpiresIn: h.ExpiresIn}
}

func doneEntry(r driver.RecordInfo) OnceRecord {
	e := OnceRecord{Key: r.Name, State: OnceDone, Length: r.Length, ExpiresIn: r.ExpiresIn}
	if e.Schedule = parseSchedule(r.Head); e.Schedule != nil {
		e.State, e.Length = OnceScheduled, 0
		return e
	}
	if h, value, ok := oncerecord.Parse(r.Head); ok {
		e.Token, e.Length = h.Token, r.Length-(len(r.Head)-len(value))
	}
	return e
}
