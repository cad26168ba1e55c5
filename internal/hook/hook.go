// Package hook has an engine in front of another one, whose requests all go
// through one function: for tests, which lose, delay, count or refuse requests
// there.
package hook

import (
	"context"
	"iter"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Request is one call that sends a request to the store. A batch is one request.
type Request struct {
	Method string // of driver.Engine, or of an optional interface
	Looks  bool   // it changes nothing in the store
}

// A Func is given every request. It may call send once, which carries the request
// out, or not at all. The error that it returns is what the caller is answered; if
// it is nil, the caller gets the answer of send, errors of a batch included.
type Func func(ctx context.Context, req Request, send func() error) error

// An Engine hands every request on to another engine by way of Each. What sends
// nothing goes there directly: capabilities, watches, losses, events, routes, and Close.
type Engine struct {
	driver.Forward
	Each Func
}

// ask sends a request with one answer.
func ask[Req, Reply any](ctx context.Context, e *Engine, r Request, req Req, method func(context.Context, Req) (Reply, error)) (Reply, error) {
	var reply Reply
	err := e.Each(ctx, r, func() (err error) {
		reply, err = method(ctx, req)
		return err
	})
	if err != nil {
		return *new(Reply), err
	}
	return reply, nil
}

// order sends a request that is answered with an error only.
func order[Req any](ctx context.Context, e *Engine, r Request, req Req, method func(context.Context, Req) error) error {
	return e.Each(ctx, r, func() error { return method(ctx, req) })
}

// find sends a request that finds something, or not.
func find[Found any](ctx context.Context, e *Engine, r Request, name string, method func(context.Context, string) (Found, bool, error)) (found Found, ok bool, err error) {
	err = e.Each(ctx, r, func() (err error) {
		found, ok, err = method(ctx, name)
		return err
	})
	if err != nil {
		return *new(Found), false, err
	}
	return found, ok, nil
}

// batch sends one request for several things; failed makes the answer about one of
// them if the whole request fails.
func batch[Req, Reply any](ctx context.Context, e *Engine, r Request, reqs []Req, method func(context.Context, []Req) []Reply, failed func(error) Reply) (replies []Reply) {
	err := e.Each(ctx, r, func() error {
		replies = method(ctx, reqs)
		return nil
	})
	if err != nil {
		replies = make([]Reply, len(reqs))
		for i := range replies {
			replies[i] = failed(err)
		}
	}
	return replies
}

// list sends one request for a whole list.
func list[T any](ctx context.Context, e *Engine, r Request, prefix string, method func(context.Context, string) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return driver.Listed(func() ([]T, error) {
		return ask(ctx, e, r, prefix, func(ctx context.Context, prefix string) (all []T, err error) {
			for v, err := range method(ctx, prefix) {
				if err != nil {
					return nil, err
				}
				all = append(all, v)
			}
			return all, nil
		})
	})
}
