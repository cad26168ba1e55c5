package rediscore

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// byNone precedes the record of a lease that continues after Complete. No lease has this ID.
const byNone lockinfo.LeaseID = "--------------------------------"

// Complete implements driver.Recorder.
func (e *engine) Complete(ctx context.Context, req driver.CompleteRequest) error {
	return again(ctx, func() error { return e.complete(ctx, req) })
}

func (e *engine) complete(ctx context.Context, req driver.CompleteRequest) error {
	if err := e.store.Enter(ctx, req.Name); err != nil {
		return err
	}
	keys := e.store.keys.Of(e.scripts.Complete.Keys, req.Name, "")
	by := req.LeaseID
	if req.Keep {
		by = byNone
	}
	args := append(e.serving(4), string(req.LeaseID), string(by)+string(req.Record), form.MS(req.Retention), "-inf")
	for stored := false; ; {
		reply, err := e.store.Eval(ctx, e.scripts.Complete, keys, args)
		var done int64
		if err == nil && form.Read(reply, &done, &args[e.scripts.Complete.Arg("from")]) {
			stored = stored || done == 1
			continue
		}
		switch {
		case err != nil && stored:
			return halfDone("stored", err) // INVARIANT I6: a repeat continues
		case err != nil:
			return err
		case reply == int64(1):
			if !req.Keep {
				e.store.Ended()
			}
			return nil
		case reply == int64(0):
			return driver.ErrLost
		default:
			return form.Malformed("complete", reply)
		}
	}
}

// Recall implements driver.Recorder.
func (e *engine) Recall(ctx context.Context, name string) (driver.Record, bool, error) {
	reply, err := e.store.EvalAbout(ctx, e.scripts.Recall, name, "")
	if err != nil || reply == nil {
		return driver.Record{}, false, err
	}
	var left int64
	var data string
	if !form.Read(reply, &left, &data) {
		return driver.Record{}, false, form.Malformed("recall", reply)
	}
	return driver.Record{Data: []byte(data), ExpiresIn: form.ExpiresIn(left)}, true, nil
}

// DescribeRecord implements driver.Recorder.
func (e *engine) DescribeRecord(ctx context.Context, name string) (driver.RecordInfo, bool, error) {
	found, failed := e.describeRecords(ctx, []string{name})
	return found[0], found[0].Name != "", failed[0]
}

// ListRecords implements driver.Recorder, by SCAN.
func (e *engine) ListRecords(ctx context.Context, prefix string) iter.Seq2[driver.RecordInfo, error] {
	return list(ctx, e, keys.Records, prefix, func(names []string) (all []driver.RecordInfo, err error) {
		for batch := range slices.Chunk(names, driver.MaxBatch) {
			found, failed := e.describeRecords(ctx, batch)
			for i, r := range found {
				if r.Name != "" {
					all = append(all, r)
				}
				if !errors.Is(failed[i], driver.ErrKindMismatch) { // another program's key
					err = cmp.Or(err, failed[i])
				}
			}
		}
		return all, err
	})
}

// describeRecords returns the records of names. If a name has no record, the Name of its element is
// empty.
func (e *engine) describeRecords(ctx context.Context, names []string) (found []driver.RecordInfo, failed []error) {
	return evalNames(ctx, e.store, "list records", e.scripts.Records, []string{strconv.Itoa(driver.RecordHead)}, names, parseRecord)
}

// parseRecord reads the reply of records.lua for one name. It returns the zero value if the name
// has no record.
func parseRecord(name string, reply any) (r driver.RecordInfo, err error) {
	if text, ok := reply.(string); ok {
		return r, ReplyError(text)
	}
	var left, length int64
	var head string
	switch {
	case form.Read(reply):
		return r, nil
	case !form.Read(reply, &left, &length, &head):
		return r, form.Malformed("list records", reply)
	}
	return driver.RecordInfo{Name: name, Head: []byte(head), Length: int(length), ExpiresIn: form.ExpiresIn(left)}, nil
}

// Forget implements driver.Recorder.
func (e *engine) Forget(ctx context.Context, name string) (bool, error) {
	if err := e.store.Enter(ctx, name); err != nil {
		return false, err
	}
	reply, err := e.store.Do(ctx, nil, Command{Words: []string{"DEL"}, Keys: []string{e.store.keys.Key(keys.Record, name)}})
	if err != nil {
		return false, err
	}
	n, ok := reply.(int64)
	if !ok {
		return false, form.Malformed("forget", reply)
	}
	return n > 0, nil
}
