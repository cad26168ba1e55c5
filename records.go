package holdfast

import (
	"context"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// Records reads what a store remembers after a lock has ended: the results of do-once
// work, the runs of schedules, and broken leases. Client.Records returns them.
//
// Its methods return snapshots, as Inspect does. A request that the store does not
// answer within Options.RequestTimeout is ErrUnavailable, and an engine that does not
// keep such records is ErrUnsupported.
type Records struct{ client *Client }

// Records returns the records of the store.
func (c *Client) Records() Records { return Records{c} }

// A OnceState is the state of do-once work.
type OnceState int

const (
	OnceAbsent     OnceState = iota // it was not done, or its result was forgotten
	OnceInProgress                  // a client does it
	OnceDone                        // it is done, and its result is kept
	OnceScheduled                   // it is the name of a schedule; see Every
)

func (s OnceState) String() string {
	return nameOf(int(s), onceStates)
}

// Result returns the stored result of a do-once key, Replayed, or a zero OnceResult if
// there is none. A result that Once has not stored, and a schedule, are ErrKindMismatch.
func (r Records) Result(ctx context.Context, key string) (OnceResult, error) {
	return consult(ctx, r.client, "result of", key, func(ctx context.Context, recorder driver.Recorder) (OnceResult, error) {
		kept, found, err := recorder.Recall(ctx, key)
		if err != nil || !found {
			return OnceResult{}, ask.Harmless(ctx, err)
		}
		return replay(kept.Data, "")
	})
}

// Forget deletes the result of a do-once key, so that the next call of Once works again,
// or the record of a schedule. It reports whether there was one. Work in progress goes
// on, and its result will be stored. After ErrOutcomeUnknown the result may be
// deleted or not; the call may be repeated.
func (r Records) Forget(ctx context.Context, key string) (bool, error) {
	return consult(ctx, r.client, "forget", key, func(ctx context.Context, recorder driver.Recorder) (bool, error) {
		found, err := recorder.Forget(ctx, key)
		return found, ask.Effective(ctx, err)
	})
}

// consult calls f with the engine if it keeps records. One Options.RequestTimeout bounds all
// requests of f. The error has the verb and the key.
func consult[T any](ctx context.Context, c *Client, op, key string, f func(context.Context, driver.Recorder) (T, error)) (v T, err error) {
	recorder, err := c.recorder(key)
	if err == nil {
		ctx, cancel := c.requestContext(ctx)
		defer cancel()
		v, err = f(ctx, recorder)
	}
	return v, opError(op, key, err)
}

// recorder returns the engine if it keeps records. It also checks the key.
func (c *Client) recorder(key string) (driver.Recorder, error) {
	if err := c.checkName(key); err != nil {
		return nil, err
	}
	if c.features.Recorder == nil {
		return nil, fmt.Errorf("do-once work is %w", ErrUnsupported)
	}
	return c.features.Recorder, nil
}

// Breaks returns what the store remembers of leases of a name that were broken, the
// latest last: for 24 hours.
func (r Records) Breaks(ctx context.Context, name string) ([]Broken, error) {
	c := r.client
	if err := c.checkName(name); err != nil {
		return nil, opError("breaks of", name, err)
	}
	if c.features.Breaker == nil {
		return nil, opError("breaks of", name, fmt.Errorf("breaking locks is %w", ErrUnsupported))
	}
	ctx, cancel := c.requestContext(ctx)
	defer cancel()
	broken, err := c.features.Breaker.Breaks(ctx, name)
	return broken, opError("breaks of", name, ask.Harmless(ctx, err))
}
