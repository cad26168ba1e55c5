package redislock

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
)

func (e *Engine) complete(ctx context.Context, req driver.CompleteRequest) error {
	if err := e.enter(ctx, req.Name); err != nil {
		return err
	}
	keys := e.keys.state(req.Name)
	args := append(e.common(), string(req.LeaseID), string(req.LeaseID)+string(req.Record), formatMS(req.Retention), "-inf")
	for stored := false; ; {
		reply, err := e.exec(ctx, e.scripts.complete, keys, args)
		if items, ok := reply.([]any); err == nil && ok && len(items) == 2 {
			if from, ok := items[1].(string); ok {
				stored = stored || items[0] == int64(1)
				args[len(args)-1] = from
				continue
			}
		}
		switch {
		case err != nil && stored:
			return halfDone("stored", err) // INVARIANT I6: a repeat goes on
		case err != nil:
			return err
		case reply == int64(1):
			e.inbox.ended()
			return nil
		case reply == int64(0):
			return driver.ErrLost
		default:
			return errMalformed("complete", reply)
		}
	}
}

// Recall implements driver.Recorder.
func (e *Engine) Recall(ctx context.Context, name string) (driver.Record, bool, error) {
	if err := e.enter(ctx, name); err != nil {
		return driver.Record{}, false, err
	}
	reply, err := e.exec(ctx, e.scripts.recall, []string{e.keys.record(name)}, nil)
	if err != nil || reply == nil {
		return driver.Record{}, false, err
	}
	items, _ := reply.([]any)
	if len(items) != 2 {
		return driver.Record{}, false, errMalformed("recall", reply)
	}
	left, ok1 := items[0].(int64)
	data, ok2 := items[1].(string)
	if !ok1 || !ok2 {
		return driver.Record{}, false, errMalformed("recall", reply)
	}
	return driver.Record{Data: []byte(data), ExpiresIn: expiresIn(left)}, true, nil
}

// Forget implements driver.Recorder.
func (e *Engine) Forget(ctx context.Context, name string) (bool, error) {
	if err := e.enter(ctx, name); err != nil {
		return false, err
	}
	reply, err := e.do(ctx, Command{Words: []string{"DEL"}, Keys: []string{e.keys.record(name)}})
	if err != nil {
		return false, err
	}
	n, ok := reply.(int64)
	if !ok {
		return false, errMalformed("forget", reply)
	}
	return n > 0, nil
}
