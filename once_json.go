package holdfast

import (
	"context"
	"encoding/json"
	"fmt"
)

// OnceJSON is Once for work whose result can be written as JSON.
func OnceJSON[T any](ctx context.Context, c *Client, key string, opts *OnceOptions, fn func(ctx context.Context, l *Lease) (T, error)) (v T, r OnceResult, err error) {
	if fn == nil {
		return v, r, opError("once", key, errNoWork)
	}
	r, err = c.Once(ctx, key, opts, func(ctx context.Context, l *Lease) ([]byte, error) {
		v, err := fn(ctx, l)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(v)
		return data, opError("once", key, err)
	})
	if err != nil {
		return v, r, err
	}
	if err := json.Unmarshal(r.Value, &v); err != nil {
		var none T // instead of half a value
		return none, r, opError("once", key, fmt.Errorf("%w: the stored result is of another type: %w", ErrKindMismatch, err))
	}
	return v, r, nil
}
