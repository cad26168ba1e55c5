package holdfast_test

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
)

// A use is a function or method that needs a client.
type use struct {
	// call has opts, a pointer to the kind of options that it takes; nil is default.
	call  func(ctx context.Context, c *holdfast.Client, name string, opts any) error
	idle  func(ctx context.Context, c *holdfast.Client) error // call with work that is nil; nil if it takes none
	opts  any                                                 // nil options of its kind; nil if it takes none
	looks bool                                                // it takes nothing, and so goes on after Close
	hears bool                                                // it only listens: a closed engine is silent, and may be
	free  bool                                                // its name is a prefix: any text will do
}

// optionsOf returns opts if they are of the kind T.
func optionsOf[T any](opts any) *T {
	o, _ := opts.(*T)
	return o
}

// lastError returns the error with which a sequence ends.
func lastError[T any](all iter.Seq2[T, error]) (err error) {
	for _, err = range all {
	}
	return err
}

var (
	acquireOptions *holdfast.AcquireOptions
	onceOptions    *holdfast.OnceOptions
)

var hourly = holdfast.Periodic(time.Unix(0, 0), time.Hour)

func doNothing(context.Context, *holdfast.Lease) error { return nil }

func doZero(context.Context, *holdfast.Lease) (int, error) { return 0, nil }

func doNone(context.Context, *holdfast.Lease) ([]byte, error) { return nil, nil }

// uses are all of package holdfast: TestUsesAreAll.
var uses = map[string]use{
	"Acquire": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.Acquire(ctx, name, optionsOf[holdfast.AcquireOptions](opts))
		return err
	}},
	"TryAcquire": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.TryAcquire(ctx, name, optionsOf[holdfast.AcquireOptions](opts))
		return err
	}},
	"AcquireAll": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.AcquireAll(ctx, []string{"other", name}, optionsOf[holdfast.AcquireOptions](opts))
		return err
	}},
	"TryAcquireAll": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.TryAcquireAll(ctx, []string{name, "other"}, optionsOf[holdfast.AcquireOptions](opts))
		return err
	}},
	"Do": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		return c.Do(ctx, name, optionsOf[holdfast.AcquireOptions](opts), doNothing)
	}, idle: func(ctx context.Context, c *holdfast.Client) error { return c.Do(ctx, "a", nil, nil) }},
	"TryDo": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		return c.TryDo(ctx, name, optionsOf[holdfast.AcquireOptions](opts), doNothing)
	}, idle: func(ctx context.Context, c *holdfast.Client) error { return c.TryDo(ctx, "a", nil, nil) }},
	"Call": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := holdfast.Call(ctx, c, name, optionsOf[holdfast.AcquireOptions](opts), doZero)
		return err
	}, idle: func(ctx context.Context, c *holdfast.Client) error {
		_, err := holdfast.Call[int](ctx, c, "a", nil, nil)
		return err
	}},
	"TryCall": {opts: acquireOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := holdfast.TryCall(ctx, c, name, optionsOf[holdfast.AcquireOptions](opts), doZero)
		return err
	}, idle: func(ctx context.Context, c *holdfast.Client) error {
		_, err := holdfast.TryCall[int](ctx, c, "a", nil, nil)
		return err
	}},
	"Lead": {opts: (*holdfast.LeadOptions)(nil), call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		return holdfast.Lead(ctx, c, name, optionsOf[holdfast.LeadOptions](opts), doNothing)
	}, idle: func(ctx context.Context, c *holdfast.Client) error { return holdfast.Lead(ctx, c, "a", nil, nil) }},
	"Adopt": {opts: (*holdfast.AdoptOptions)(nil), call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		o := optionsOf[holdfast.AdoptOptions](opts)
		if o == nil {
			o = &holdfast.AdoptOptions{Token: 7}
		}
		_, err := c.Adopt(ctx, name, driver.NewLeaseID(), o)
		return err
	}},
	"Once": {opts: onceOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.Once(ctx, name, optionsOf[holdfast.OnceOptions](opts), doNone)
		return err
	}, idle: func(ctx context.Context, c *holdfast.Client) error {
		_, err := c.Once(ctx, "a", nil, nil)
		return err
	}},
	"OnceEvery": {opts: onceOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.OnceEvery(ctx, name, time.Unix(1, 0), optionsOf[holdfast.OnceOptions](opts), doNone)
		return err
	}, idle: func(ctx context.Context, c *holdfast.Client) error {
		_, err := c.OnceEvery(ctx, "a", time.Unix(1, 0), nil, nil)
		return err
	}},
	"Every": {opts: (*holdfast.EveryOptions)(nil), call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		return holdfast.Every(ctx, c, name, hourly, optionsOf[holdfast.EveryOptions](opts), func(context.Context, holdfast.EveryRun) error { return nil })
	}, idle: func(ctx context.Context, c *holdfast.Client) error {
		return holdfast.Every(ctx, c, "a", hourly, nil, nil)
	}},
	"EveryStatus": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.EveryStatus(ctx, name)
		return err
	}},
	"OnceJSON": {opts: onceOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, _, err := holdfast.OnceJSON(ctx, c, name, optionsOf[holdfast.OnceOptions](opts), doZero)
		return err
	}, idle: func(ctx context.Context, c *holdfast.Client) error {
		_, _, err := holdfast.OnceJSON[int](ctx, c, "a", nil, nil)
		return err
	}},
	"OnceBegin": {opts: onceOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, _, err := c.OnceBegin(ctx, name, optionsOf[holdfast.OnceOptions](opts))
		return err
	}},
	"OnceAdopt": {opts: onceOptions, call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, _, err := c.OnceAdopt(ctx, name, driver.NewLeaseID(), 7, optionsOf[holdfast.OnceOptions](opts))
		return err
	}},
	"OnceStatus": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.OnceStatus(ctx, name)
		return err
	}},
	"OnceEntryOf": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.OnceEntryOf(ctx, holdfast.Lock{Name: name})
		return err
	}},
	"OnceEntry": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.OnceEntry(ctx, name)
		return err
	}},
	"OnceForget": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.OnceForget(ctx, name)
		return err
	}},
	"OnceList": {looks: true, free: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		return lastError(c.OnceList(ctx, name))
	}},
	"Inspect": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.Inspect(ctx, name)
		return err
	}},
	"List": {looks: true, free: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		return lastError(c.List(ctx, name))
	}},
	"Break": {looks: true, opts: (*holdfast.BreakOptions)(nil), call: func(ctx context.Context, c *holdfast.Client, name string, opts any) error {
		_, err := c.Break(ctx, name, optionsOf[holdfast.BreakOptions](opts))
		return err
	}},
	"History": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.History(ctx, name)
		return err
	}},
	"Feed": {hears: true, free: true, call: func(ctx context.Context, c *holdfast.Client, prefix string, _ any) error {
		return lastError(c.Feed(ctx, prefix))
	}},
	"Breaks": {looks: true, call: func(ctx context.Context, c *holdfast.Client, name string, _ any) error {
		_, err := c.Breaks(ctx, name)
		return err
	}},
}

// noUses need a client, but neither a store nor a name.
var noUses = []string{"Close", "Features", "String", "GoString", "MarshalText"}
