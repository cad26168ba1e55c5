package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/memlock"
)

// A loss is one way in which the work's lease is lost. lose makes the store lose it,
// unless the options do.
type loss struct {
	opts holdfast.AcquireOptions
	lose func(t *testing.T, store *memlock.Engine, l *holdfast.Lease)
	says string
	is   []error
}

var losses = map[string]loss{
	"MaxHold":  {opts: holdfast.AcquireOptions{MaxHold: time.Minute}, says: "held for MaxHold", is: []error{holdfast.ErrMaxHold}},
	"Progress": {opts: holdfast.AcquireOptions{Progress: time.Minute}, says: "no progress was reported", is: []error{holdfast.ErrStalled}},
	"broken": {
		lose: func(t *testing.T, store *memlock.Engine, l *holdfast.Lease) {
			if _, err := newClient(t, store, nil).Break(t.Context(), l.Name(), &holdfast.BreakOptions{Author: "ada", Reason: "its node is gone"}); err != nil {
				t.Error(err)
			}
		},
		says: "broken by ada: its node is gone", is: []error{holdfast.ErrBroken},
	},
	"taken away": {
		lose: func(t *testing.T, store *memlock.Engine, l *holdfast.Lease) { takeAway(t, store, l.Name()) },
		says: "the store says that it is not live",
	},
}

// doForms are the calls that run work under a lease.
var doForms = map[string]func(ctx context.Context, c *holdfast.Client, o holdfast.AcquireOptions, work func(context.Context, *holdfast.Lease) error) error{
	"do": func(ctx context.Context, c *holdfast.Client, o holdfast.AcquireOptions, work func(context.Context, *holdfast.Lease) error) error {
		return c.Do(ctx, "a", &o, work)
	},
	"do, trying": func(ctx context.Context, c *holdfast.Client, o holdfast.AcquireOptions, work func(context.Context, *holdfast.Lease) error) error {
		return c.TryDo(ctx, "a", &o, work)
	},
	"once": func(ctx context.Context, c *holdfast.Client, o holdfast.AcquireOptions, work func(context.Context, *holdfast.Lease) error) error {
		_, err := c.Once(ctx, "a", &holdfast.OnceOptions{MaxHold: o.MaxHold, Progress: o.Progress}, func(ctx context.Context, l *holdfast.Lease) ([]byte, error) {
			return nil, work(ctx, l)
		})
		return err
	},
}

// TestLossSaysWhy: the error of work whose lease was lost is the loss, why it was lost, and
// what the work has said, in one line, however the work takes it.
func TestLossSaysWhy(t *testing.T) {
	errWork := errors.New("the disk is full")
	works := map[string]struct {
		work func(ctx context.Context) error
		ends string // of the text
		is   error
	}{
		"succeeds":          {work: func(context.Context) error { return nil }},
		"fails":             {work: func(context.Context) error { return errWork }, ends: "; the work returned: the disk is full", is: errWork},
		"ends":              {work: func(ctx context.Context) error { return ctx.Err() }, ends: "; the work returned: context canceled", is: context.Canceled},
		"returns the cause": {work: context.Cause},
		"wraps the cause":   {work: func(ctx context.Context) error { return fmt.Errorf("copying: %w", context.Cause(ctx)) }},
		"meets another loss": {
			work: func(context.Context) error { return fmt.Errorf("copying: %w", holdfast.ErrLost) },
			ends: "; the work returned: copying: lease is lost",
		},
	}
	for reason, lost := range losses {
		for form, do := range doForms {
			for how, tt := range works {
				if form == "once" && how == "succeeds" {
					continue // whether its result is kept is the store's to say: see once_complete_test.go
				}
				t.Run(reason+", "+form+", "+how, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						store := memlock.New()
						c := newClient(t, store, nil)
						err := do(t.Context(), c, lost.opts, func(ctx context.Context, l *holdfast.Lease) error {
							if lost.lose != nil {
								lost.lose(t, store, l)
							}
							<-ctx.Done()
							return tt.work(ctx)
						})
						wantLoss(t, err, lost, tt.is)
						verb, _, _ := strings.Cut(form, ",")
						says := `holdfast: ` + verb + ` "a": while the work ran: lease is lost: ` + lost.says + tt.ends
						if how == "wraps the cause" {
							says = "copying: lease is lost: " + lost.says
						}
						if err != nil && err.Error() != says {
							t.Errorf("%q\nwant %q", err, says)
						}
					})
				})
			}
		}
	}
}

// wantLoss fails t unless err is the loss and, unless it is nil, also.
func wantLoss(t *testing.T, err error, lost loss, also error) {
	t.Helper()
	for _, is := range append([]error{holdfast.ErrLost}, lost.is...) {
		wantErr(t, err, is)
	}
	if also != nil {
		wantErr(t, err, also)
	}
	var broken *holdfast.BrokenError
	if errors.Is(err, holdfast.ErrBroken) && (!errors.As(err, &broken) || broken.Author != "ada" || broken.Reason != "its node is gone") {
		t.Errorf("%v: author and reason are %+v", err, broken)
	}
}

// TestLossFoundAtTheEndSaysWhy: work that ends before anybody has heard of the loss learns
// it from the release, or from the store that refuses its result, and why as well.
func TestLossFoundAtTheEndSaysWhy(t *testing.T) {
	errWork := errors.New("the disk is full")
	for _, reason := range []string{"broken", "taken away"} {
		for form, do := range doForms {
			for _, result := range []error{nil, errWork} {
				t.Run(fmt.Sprint(reason, ", ", form, ", ", result), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						store, lost := memlock.New(), losses[reason]
						var told []error
						c := newClient(t, &silent{newFaultyOn(store)}, &holdfast.Options{Observer: func(e holdfast.Event) {
							if e.Kind == holdfast.Lost {
								told = append(told, e.Err)
							}
						}})
						err := do(t.Context(), c, lost.opts, func(_ context.Context, l *holdfast.Lease) error {
							lost.lose(t, store, l)
							return result
						})
						wantLoss(t, err, lost, result)
						if err != nil && (strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), lost.says) != 1) {
							t.Errorf("%q, want one line that says once: %s", err, lost.says)
						}
						synctest.Wait()
						if len(told) != 1 || !strings.Contains(told[0].Error(), lost.says) {
							t.Errorf("the Observer heard %v, want: %s", told, lost.says)
						}
					})
				})
			}
		}
	}
}

// TestLossWithoutAnAnswer: a store that does not say why the lease was lost takes a moment,
// and leaves it at the loss.
func TestLossWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		f := newFaultyOn(store)
		c := newClient(t, unwilling{&silent{f}}, nil)
		start := time.Now()
		err := c.Do(t.Context(), "a", nil, func(_ context.Context, l *holdfast.Lease) error {
			losses["broken"].lose(t, store, l)
			return nil
		})
		if wantErr(t, err, holdfast.ErrLost); errors.Is(err, holdfast.ErrBroken) || time.Since(start) > 250*time.Millisecond {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

// An unwilling engine does not say which locks were broken.
type unwilling struct{ *silent }

func (unwilling) Breaks(ctx context.Context, _ string) ([]driver.Broken, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
