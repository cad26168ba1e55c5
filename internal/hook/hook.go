// Package hook has an engine that passes all requests to another engine through one function.
// Tests lose, delay, count or refuse requests in that function.
package hook

import (
	"context"
	"iter"

	"github.com/holdfast-locks/holdfast/driver"
)

// A Request is one call that sends a request to the store. A batch is one request.
type Request struct {
	Method string // a method of driver.Engine, or of an optional interface
	Looks  bool   // the request changes nothing in the store
}

// A Func receives every request. It may call send, which carries the request out, once or not at
// all. If it returns an error, the caller gets that error; otherwise the caller gets the reply of
// send, with the errors of a batch.
type Func func(ctx context.Context, req Request, send func() error) error

// An Engine passes every request to another engine through Each. Methods that send nothing bypass
// Each: capabilities, watches, losses, events, routes, and Close.
type Engine struct {
	driver.Forward
	Each Func
}

// ask sends a request with one reply.
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

// order sends a request whose only reply is an error.
func order[Req any](ctx context.Context, e *Engine, r Request, req Req, method func(context.Context, Req) error) error {
	return e.Each(ctx, r, func() error { return method(ctx, req) })
}

// find sends a request that may find nothing.
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

// batch sends one request for several items. If the whole request fails, failed makes the reply
// for each item.
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
