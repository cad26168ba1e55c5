package ask_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

var (
	errLink = errors.New("connection reset")
	errWish = errors.New("the caller has changed his mind")
)

// sentinels are the errors of which an error of this package wraps only the wanted ones.
var sentinels = []error{
	driver.ErrLost, driver.ErrUnavailable, driver.ErrInvalid, driver.ErrUnsupported, driver.ErrPermission,
	driver.ErrKindMismatch, driver.ErrClosed, driver.ErrOutcomeUnknown, context.Canceled, context.DeadlineExceeded,
}

// wraps fails the test unless err wraps each error of want, and no other sentinel. Without want
// there must be no error.
func wraps(t *testing.T, what string, err error, want ...error) {
	t.Helper()
	if len(want) == 0 && err != nil {
		t.Errorf("%s: %v, want none", what, err)
	}
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("%s: %v, want %v", what, err, w)
		}
	}
	for _, s := range sentinels {
		wanted := false
		for _, w := range want {
			wanted = wanted || w == s
		}
		if !wanted && errors.Is(err, s) {
			t.Errorf("%s: %v, which is %v as well", what, err, s)
		}
	}
}

// TestClasses checks how Harmless and Effective classify the error of a request, depending on what
// ended its context.
func TestClasses(t *testing.T) {
	down := fmt.Errorf("%w: refused", driver.ErrUnavailable)
	denied := fmt.Errorf("%w: +eval is missing", driver.ErrPermission)
	tests := map[string]struct {
		err       error // of the request; nil means the error of its context
		end       string
		harmless  []error
		effective []error
	}{
		"definite":                        {err: down, harmless: []error{driver.ErrUnavailable}, effective: []error{driver.ErrUnavailable}},
		"permanent":                       {err: denied, harmless: []error{driver.ErrPermission}, effective: []error{driver.ErrPermission}},
		"lost":                            {err: driver.ErrLost, harmless: []error{driver.ErrLost}, effective: []error{driver.ErrLost}},
		"no answer":                       {err: errLink, harmless: []error{driver.ErrUnavailable, errLink}, effective: []error{driver.ErrOutcomeUnknown, errLink}},
		"our limit":                       {end: "limit", harmless: []error{driver.ErrUnavailable, ask.ErrNoAnswer}, effective: []error{driver.ErrOutcomeUnknown, ask.ErrNoAnswer}},
		"our limit, but an answer":        {err: down, end: "limit", harmless: []error{driver.ErrUnavailable}, effective: []error{driver.ErrUnavailable}},
		"the caller's limit":              {end: "deadline", harmless: []error{context.DeadlineExceeded}, effective: []error{driver.ErrOutcomeUnknown, context.DeadlineExceeded}},
		"the caller":                      {end: "cancel", harmless: []error{context.Canceled}, effective: []error{driver.ErrOutcomeUnknown, context.Canceled}},
		"the caller, with a reason":       {end: "cause", harmless: []error{context.Canceled, errWish}, effective: []error{driver.ErrOutcomeUnknown, context.Canceled}},
		"the caller, and another error":   {err: errLink, end: "cancel", harmless: []error{context.Canceled}, effective: []error{driver.ErrOutcomeUnknown, errLink}},
		"the caller, but an answer":       {err: denied, end: "cancel", harmless: []error{driver.ErrPermission}, effective: []error{driver.ErrPermission}},
		"the caller's limit, but its own": {err: down, end: "deadline", harmless: []error{driver.ErrUnavailable}, effective: []error{driver.ErrUnavailable}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := ending(t, test.end)
				defer stop()
				ctx, cancel := ask.Limit(ctx, time.Minute)
				defer cancel()
				if test.end != "" {
					<-ctx.Done()
				}
				err := test.err
				if err == nil {
					err = ctx.Err()
				}
				wraps(t, "Harmless, answered", ask.Harmless(ctx, nil))
				wraps(t, "Effective, answered", ask.Effective(ctx, nil))
				wraps(t, "Harmless", ask.Harmless(ctx, err), test.harmless...)
				wraps(t, "Effective", ask.Effective(ctx, err), test.effective...)
			})
		})
	}
}

// ending returns a caller's context that ends after a second in the given way. With "limit" or ""
// it does not end.
func ending(t *testing.T, how string) (context.Context, func()) {
	switch how {
	case "deadline":
		return context.WithTimeout(t.Context(), time.Second)
	case "cancel", "cause":
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := map[string]error{"cause": errWish}[how]
		time.AfterFunc(time.Second, func() { cancel(reason) })
		return ctx, func() { cancel(nil) }
	}
	return t.Context(), func() {}
}

// TestContextError checks that ContextError contains the error of the context and its cause, but
// not the same error twice.
func TestContextError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errWish)
	wraps(t, "with a cause", ask.ContextError(ctx), context.Canceled, errWish)
	ctx, cancel = context.WithCancelCause(t.Context())
	cancel(nil)
	if err := ask.ContextError(ctx); err != context.Canceled {
		t.Errorf("without a cause: %v", err)
	}
}

// TestBackoff checks that pauses grow from the first to the longest, and are random.
func TestBackoff(t *testing.T) {
	var b ask.Backoff
	whole, longest := ask.FirstPause, map[time.Duration]bool{}
	for range 30 {
		pause := b.Next(ask.LastPause)
		if pause < whole/2 || pause > whole {
			t.Fatalf("a pause of %s, want %s to %s", pause, whole/2, whole)
		}
		if whole == ask.LastPause {
			longest[pause] = true
		}
		whole = min(2*whole, ask.LastPause)
	}
	if len(longest) < 2 {
		t.Error("no pause is random")
	}
	if pause := b.Next(50 * time.Millisecond); pause > 50*time.Millisecond {
		t.Errorf("a pause of %s, want 50ms at most", pause)
	}
}

// TestSleep checks that a pause takes its time, or ends with its context.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := ending(t, "cancel")
		defer stop()
		began := time.Now()
		if !ask.Sleep(ctx, time.Second/2) || time.Since(began) != time.Second/2 {
			t.Errorf("a pause of 500ms took %s", time.Since(began))
		}
		if ask.Sleep(ctx, time.Minute) || time.Since(began) != time.Second {
			t.Errorf("a pause ended %s after the beginning, its context after 1s", time.Since(began))
		}
		if ask.Sleep(ctx, time.Minute) || time.Since(began) != time.Second {
			t.Error("there was a pause under a context that had ended")
		}
	})
}
