// Package contexttest observes a context in all possible ways, so that tests can compare our
// implementations, which make their context late, with those of package context.
package contexttest

import (
	"context"
	"fmt"
	"strings"
	"testing/synctest"
	"time"
)

// Key is the key of a value in the contexts.
var Key = new(int)

// A Look is one way to observe a context. See returns what it observes.
type Look struct {
	Name string
	See  func(context.Context) string
}

// Looks returns all ways. Each must be used in a bubble of testing/synctest.
func Looks() []Look {
	return []Look{
		{"Err", func(ctx context.Context) string { return fmt.Sprint(ctx.Err()) }},
		{"Cause", func(ctx context.Context) string { return fmt.Sprint(context.Cause(ctx)) }},
		{"Done", done},
		{"Deadline", func(ctx context.Context) string {
			end, ok := ctx.Deadline()
			return fmt.Sprint(time.Until(end), ok)
		}},
		{"Value", func(ctx context.Context) string { return fmt.Sprint(ctx.Value(Key), ctx.Value("nobody's")) }},
		{"derived", func(ctx context.Context) string {
			child, cancel := context.WithCancel(context.WithValue(ctx, new(string), 1))
			defer cancel()
			return fmt.Sprint(child.Err(), context.Cause(child), done(child))
		}},
		{"AfterFunc", func(ctx context.Context) string {
			ran := false
			stop := context.AfterFunc(ctx, func() { ran = true })
			synctest.Wait()
			return fmt.Sprint(ran, stop())
		}},
	}
}

func done(ctx context.Context) string {
	select {
	case <-ctx.Done():
		return "done"
	default:
		return "not done"
	}
}

// All observes ctx in all ways.
func All(ctx context.Context) string {
	var said []string
	for _, look := range Looks() {
		said = append(said, look.Name+": "+look.See(ctx))
	}
	return strings.Join(said, "; ")
}

// A Child is a context that is derived from another one, which may have ended or not.
type Child struct {
	ctx   context.Context
	after bool // the function of an AfterFunc has run
}

// Derive makes a Child of ctx. stop ends it.
func Derive(ctx context.Context) (child *Child, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	c := &Child{ctx: ctx}
	context.AfterFunc(ctx, func() { c.after = true })
	return c, stop
}

// See returns the state of the child.
func (c *Child) See() string {
	synctest.Wait()
	return fmt.Sprint(c.ctx.Err(), context.Cause(c.ctx), done(c.ctx), c.after)
}
