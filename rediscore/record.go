package rediscore

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/internal/form"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

func (e *Engine) complete(ctx context.Context, req driver.CompleteRequest) error {
	if err := e.store.Enter(ctx, req.Name); err != nil {
		return err
	}
	keys := e.store.keys.Of(e.scripts.Complete.Keys, req.Name, "")
	args := append(e.serving(4), string(req.LeaseID), string(req.LeaseID)+string(req.Record), form.MS(req.Retention), "-inf")
	for stored := false; ; {
		reply, err := e.store.Eval(ctx, e.scripts.Complete, keys, args)
		var done int64
		if err == nil && form.Read(reply, &done, &args[e.scripts.Complete.Arg("from")]) {
			stored = stored || done == 1
			continue
		}
		switch {
		case err != nil && stored:
			return halfDone("stored", err) // INVARIANT I6: a repeat goes on
		case err != nil:
			return err
		case reply == int64(1):
			e.store.Ended()
			return nil
		case reply == int64(0):
			return driver.ErrLost
		default:
			return form.Malformed("complete", reply)
		}
	}
}

// Recall implements driver.Recorder.
func (e *Engine) Recall(ctx context.Context, name string) (driver.Record, bool, error) {
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

// Forget implements driver.Recorder.
func (e *Engine) Forget(ctx context.Context, name string) (bool, error) {
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
