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

// A OnceEntry is what has become of a do-once key, without its result, or of a schedule.
type OnceEntry struct {
	Key       string
	State     OnceState
	Holder    Holder        // if in progress; of a schedule, in OnceList, whoever runs it, or zero
	Since     time.Duration // if in progress: how long ago it began; 0 if the store does not know
	Token     uint64        // if done: that of the run; 0 if Once has not stored the result
	Length    int           // if done: of the result, in bytes
	ExpiresIn time.Duration // of the result, or of the lease of the work unless it is extended

	Schedule *ScheduleRecord // if it is that of a schedule; else nil
}

// OnceEntry is OnceStatus without the result, which may be long: the store is asked
// for its length only. It wraps ErrUnsupported if the engine cannot tell.
func (c *Client) OnceEntry(ctx context.Context, key string) (OnceEntry, error) {
	e, err := c.onceEntry(ctx, key)
	return e, opError("status of", key, err)
}

// OnceEntryOf is OnceEntry for whoever has just asked Inspect of the name: what lock says is
// not asked again.
func (c *Client) OnceEntryOf(ctx context.Context, lock Lock) (OnceEntry, error) {
	e, err := c.onceEntryOf(ctx, lock)
	return e, opError("status of", lock.Name, err)
}

// onceEntryOf asks for the record after the lock: work that is completed between the two is
// seen as done.
func (c *Client) onceEntryOf(ctx context.Context, lock Lock) (OnceEntry, error) {
	records, err := c.describer(lock.Name)
	if err != nil {
		return OnceEntry{}, err
	}
	ctx, cancel := c.requestContext(ctx)
	defer cancel()
	e, err := describe(ctx, records, lock.Name)
	if live := lock.Live(); err == nil && e.State == OnceAbsent && len(live) > 0 {
		e = inProgress(lock.Name, live[0])
	}
	return e, err
}

// describer returns the engine if it can tell of records.
func (c *Client) describer(key string) (driver.RecordLister, error) {
	if _, err := c.recorder(key); err != nil {
		return nil, err
	}
	if c.features.RecordLister == nil {
		return nil, fmt.Errorf("describing do-once work is %w", ErrUnsupported)
	}
	return c.features.RecordLister, nil
}

func (c *Client) onceEntry(ctx context.Context, key string) (e OnceEntry, err error) {
	records, err := c.describer(key)
	if err != nil {
		return e, err
	}
	ctx, cancel := c.requestContext(ctx)
	defer cancel()
	if e, err = describe(ctx, records, key); err != nil || e.State != OnceAbsent {
		return e, err
	}
	lock, err := c.inspect(ctx, key)
	if err != nil {
		return e, err
	}
	if live := lock.Live(); len(live) > 0 {
		return inProgress(key, live[0]), nil
	}
	return describe(ctx, records, key) // it may have been completed between the two looks
}

func describe(ctx context.Context, records driver.RecordLister, key string) (OnceEntry, error) {
	r, found, err := records.DescribeRecord(ctx, key)
	if err != nil || !found {
		return OnceEntry{Key: key}, ask.Harmless(ctx, err)
	}
	return doneEntry(r), nil
}

// OnceList yields the do-once keys that begin with prefix and are done or in
// progress, in no particular order; all of them if prefix is empty. A key whose
// work begins or whose result is forgotten meanwhile may be among them or not. Results are
// not read. An error ends the sequence; it wraps ErrUnsupported if the engine cannot
// list. Nothing but ctx bounds how long it takes.
func (c *Client) OnceList(ctx context.Context, prefix string) iter.Seq2[OnceEntry, error] {
	return func(yield func(OnceEntry, error) bool) {
		err := c.onceList(ctx, prefix, func(e OnceEntry) bool { return yield(e, nil) })
		if err != nil {
			yield(OnceEntry{}, opError("list", prefix, err))
		}
	}
}

// onceList looks for work in progress first: so work that is completed meanwhile is
// seen as done, if not before.
func (c *Client) onceList(ctx context.Context, prefix string, yield func(OnceEntry) bool) error {
	if err := c.check(); err != nil {
		return err
	}
	lister, records := c.features.Lister, c.features.RecordLister
	if lister == nil || records == nil || c.features.Recorder == nil {
		return fmt.Errorf("listing do-once work is %w", ErrUnsupported)
	}
	working := map[string]OnceEntry{}
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
		if !yield(e) {
			return nil
		}
	}
	for _, e := range working {
		if !yield(e) {
			return nil
		}
	}
	return nil
}

func inProgress(key string, h Holding) OnceEntry {
	return OnceEntry{Key: key, State: OnceInProgress, Holder: h.Holder, Since: h.Since, ExpiresIn: h.ExpiresIn}
}

func doneEntry(r driver.RecordInfo) OnceEntry {
	e := OnceEntry{Key: r.Name, State: OnceDone, Length: r.Length, ExpiresIn: r.ExpiresIn}
	if e.Schedule = parseSchedule(r.Head); e.Schedule != nil {
		e.State, e.Length = OnceScheduled, 0
		return e
	}
	if h, value, ok := oncerecord.Parse(r.Head); ok {
		e.Token, e.Length = h.Token, r.Length-(len(r.Head)-len(value))
	}
	return e
}
