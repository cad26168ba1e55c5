package holdfast

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A OnceStatus is what has become of the work under a do-once key.
type OnceStatus struct {
	State     OnceState
	Result    OnceResult    // if done
	Holder    Holder        // if in progress
	Since     time.Duration // if in progress: for how long, by the store's clock
	ExpiresIn time.Duration // of the result, or of the lease of the work unless it is extended
}

// OnceStatus reports what has become of a do-once key. It is a snapshot, as that of
// Inspect. A key whose name is held as a lock is in progress too. A result that
// Once has not stored is ErrKindMismatch; an engine that keeps no results is
// ErrUnsupported.
func (c *Client) OnceStatus(ctx context.Context, key string) (OnceStatus, error) {
	status, err := c.status(ctx, key)
	return status, opError("status of", key, err)
}

func (c *Client) status(ctx context.Context, key string) (OnceStatus, error) {
	recorder, err := c.recorder(key)
	if err != nil {
		return OnceStatus{}, err
	}
	ctx, cancel := c.requestContext(ctx)
	defer cancel()
	status, err := recall(ctx, recorder, key)
	if err != nil || status.State == OnceDone {
		return status, err
	}
	lock, err := c.inspect(ctx, key)
	if err != nil {
		return OnceStatus{}, err
	}
	for _, h := range lock.Holders {
		if !h.Released {
			return OnceStatus{State: OnceInProgress, Holder: h.Holder, Since: h.Since, ExpiresIn: h.ExpiresIn}, nil
		}
	}
	return recall(ctx, recorder, key) // it may have been completed between the two looks
}

func recall(ctx context.Context, recorder driver.Recorder, key string) (OnceStatus, error) {
	r, found, err := recorder.Recall(ctx, key)
	if err != nil || !found {
		return OnceStatus{}, ask.Harmless(ctx, err)
	}
	result, err := replay(r.Data, "")
	return OnceStatus{State: OnceDone, Result: result, ExpiresIn: r.ExpiresIn}, err
}

// OnceForget deletes the result of a do-once key, so that the next call of Once
// works again, and reports whether there was one. Work in progress goes on,
// and its result will be stored. ErrOutcomeUnknown says that the result may be
// deleted or not; the call may be repeated.
func (c *Client) OnceForget(ctx context.Context, key string) (bool, error) {
	recorder, err := c.recorder(key)
	if err != nil {
		return false, opError("forget", key, err)
	}
	ctx, cancel := c.requestContext(ctx)
	defer cancel()
	found, err := recorder.Forget(ctx, key)
	return found, opError("forget", key, ask.Effective(ctx, err))
}

// recorder returns the engine if it can keep records.
func (c *Client) recorder(key string) (driver.Recorder, error) {
	if err := c.checkName(key); err != nil {
		return nil, err
	}
	if c.features.Recorder == nil {
		return nil, fmt.Errorf("do-once work is %w", ErrUnsupported)
	}
	return c.features.Recorder, nil
}
