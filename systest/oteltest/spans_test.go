package oteltest

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
	"github.com/holdfast-locks/holdfast/otellock"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

func TestLoneAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{})
		ctx, parent := c.tracer.Start(t.Context(), "request")
		err := c.Do(ctx, "orders/42", nil, func(ctx context.Context, l *holdfast.Lease) error {
			_, child := c.tracer.Start(c.telemetry.WithHold(ctx), "work")
			time.Sleep(2 * time.Second)
			child.End()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		parent.End()
		compare(t, c.locks(t),
			"lock.acquire 0s attempts=1 mode=exclusive name=orders/42 result=acquired waited=false",
			"lock.hold 2s end=released mode=exclusive name=orders/42 renewals=0",
		)
		spans := map[string]sdk.ReadOnlySpan{}
		for _, s := range c.recorder.Ended() {
			spans[s.Name()] = s
		}
		for child, parent := range map[string]string{"lock.acquire": "request", "lock.hold": "request", "work": "lock.hold"} {
			if got := spans[child].Parent().SpanID(); got != spans[parent].SpanContext().SpanID() {
				t.Errorf("%s is not a child of %s", child, parent)
			}
		}
	})
}

// TestHandOver checks that the spans of a waiter's wait and lease link to the span under which the
// previous holder acquired the lock.
func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{})
		first, firstSpan := c.tracer.Start(t.Context(), "first")
		second, secondSpan := c.tracer.Start(t.Context(), "second")
		held, err := c.Acquire(first, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			done <- c.Do(second, "a", nil, func(context.Context, *holdfast.Lease) error { time.Sleep(time.Second); return nil })
		}()
		time.Sleep(2 * time.Second)
		held.Release(t.Context())
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		firstSpan.End()
		secondSpan.End()
		compare(t, c.locks(t),
			"lock.acquire 0s attempts=1 mode=exclusive name=a result=acquired waited=false",
			"lock.hold 2s end=released mode=exclusive name=a renewals=0",
			"lock.acquire 2s attempts=1 mode=exclusive name=a result=acquired waited=true [waiting at 0s] [handed over at 2s] links=1",
			"lock.hold 1s end=released mode=exclusive name=a renewals=1 links=1",
		)
		for _, s := range c.recorder.Ended() {
			for _, link := range s.Links() {
				if got := link.SpanContext; got.TraceID() != firstSpan.SpanContext().TraceID() || got.SpanID() != firstSpan.SpanContext().SpanID() || !got.IsRemote() || !got.IsSampled() {
					t.Errorf("%s of the second links to %+v, want the first", s.Name(), got)
				}
			}
		}
	})
}

// TestRefused checks that a refusal is not an error of the span.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{TraceName: otellock.FoldNames})
		ctx, span := c.tracer.Start(t.Context(), "holder")
		defer span.End()
		held, err := c.Acquire(ctx, "orders/1", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release(t.Context())
		if _, err := c.TryAcquire(t.Context(), "orders/1", nil); !errors.Is(err, holdfast.ErrHeld) {
			t.Fatal(err)
		}
		ended, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := c.Acquire(ended, "orders/1", nil); err == nil {
			t.Fatal("two have it")
		}
		if _, err := c.Acquire(t.Context(), "orders/1", &holdfast.AcquireOptions{MaxWait: time.Second}); !errors.Is(err, holdfast.ErrHeld) {
			t.Fatal(err)
		}
		got := c.spansOf(t, "lock.acquire")
		for i, want := range []string{"result=acquired", "result=held", "result=held", "result=held"} {
			if i >= len(got) || !strings.Contains(got[i], want) || strings.Contains(got[i], "ERROR") || !strings.Contains(got[i], "name=orders/*") {
				t.Errorf("span %d: %v, want %s", i, got, want)
			}
			if linked := strings.Contains(got[i], "links=1"); linked != (i > 0) {
				t.Errorf("links of span %d: %s", i, got[i])
			}
		}
	})
}

// TestCancelledWait checks that a wait that its context cancels is not an error of the span.
func TestCancelledWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{})
		held, err := c.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		if _, err := c.Acquire(ctx, "a", nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		got := c.spansOf(t, "lock.acquire")
		if len(got) != 2 || !inOrder(got[1], "lock.acquire 3s", "result=ended", "waited=true", "[waiting at 0s]") || strings.Contains(got[1], "ERROR") {
			t.Errorf("%q", got)
		}
	})
}

// TestRenewals checks that renewals are counted, and that each is an event only with the option
// Renewals.
func TestRenewals(t *testing.T) {
	for _, each := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newTraced(t, otellock.Options{Renewals: each})
			l, err := c.Acquire(t.Context(), "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			l.Release(t.Context())
			got := c.spansOf(t, "lock.hold")
			if len(got) != 1 || strings.Contains(got[0], "renewals=0") {
				t.Fatalf("%q", got)
			}
			events := strings.Count(got[0], "[renewed at ")
			if counted := strings.Contains(got[0], fmt.Sprintf("renewals=%d ", events)); counted != each || (events > 0) != each {
				t.Errorf("with each renewal %t: %s", each, got[0])
			}
		})
	}
}

func TestLostAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{})
		l, err := c.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		c.lose = func(method string) error {
			if method == "Extend" {
				return fmt.Errorf("%w: no route", driver.ErrUnavailable)
			}
			return nil
		}
		<-l.Context().Done()
		got := c.spansOf(t, "lock.hold")
		if len(got) != 1 || !strings.Contains(got[0], "end=lost") || !strings.Contains(got[0], "ERROR(lost: deadline)") || !strings.Contains(got[0], "[renewal failed at ") {
			t.Errorf("%q", got)
		}
	})
}

func TestLostBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{})
		l, err := c.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := c.Break(t.Context(), "a", &holdfast.BreakOptions{Author: "ada", Reason: "it hangs"}); err != nil {
			t.Fatal(err)
		}
		<-l.Context().Done()
		got := c.spansOf(t, "lock.hold")
		compare(t, got, "lock.hold 1s end=lost mode=exclusive name=a renewals=0 ERROR(lost: broken) [broken at 1s] [lost at 1s]")
		for _, s := range c.recorder.Ended() {
			if s.Name() != "lock.hold" {
				continue
			}
			if text := fmt.Sprint(s.Events()); !strings.Contains(text, "ada") || !strings.Contains(text, "it hangs") {
				t.Errorf("who broke it, and why: %s", text)
			}
		}
	})
}

// TestOnceReplay checks that a replay of do-once work is an acquire that ends without a lease and
// without an error.
func TestOnceReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{})
		for range 2 {
			_, err := c.Once(t.Context(), "mail/7", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return []byte("sent"), nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		failed := errors.New("no such address")
		if _, err := c.Once(t.Context(), "mail/8", nil, func(context.Context, *holdfast.Lease) ([]byte, error) { return nil, failed }); !errors.Is(err, failed) {
			t.Fatal(err)
		}
		compare(t, c.locks(t),
			"lock.acquire 0s attempts=1 mode=exclusive name=mail/7 once=true result=acquired waited=false",
			"lock.hold 0s end=released mode=exclusive name=mail/7 once=true renewals=0 [once completed at 0s]",
			"lock.acquire 0s attempts=1 mode=exclusive name=mail/7 once=true result=replayed waited=false",
			"lock.acquire 0s attempts=1 mode=exclusive name=mail/8 once=true result=acquired waited=false",
			"lock.hold 0s end=released mode=exclusive name=mail/8 once=true renewals=0 [once failed at 0s]",
		)
	})
}

func TestPanicInWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{})
		func() {
			defer func() { recover() }()
			_ = c.Do(t.Context(), "a", nil, func(context.Context, *holdfast.Lease) error { panic("at work") })
		}()
		compare(t, c.spansOf(t, "lock.hold"), "lock.hold 0s end=released mode=exclusive name=a renewals=0")
	})
}

// TestLostReplies checks that lost replies do not add spans: there is one acquire and one lease,
// however often requests are repeated.
func TestLostReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{})
		left := map[string]int{"Acquire": 2, "Extend": 1, "Release": 1}
		c.lose = func(method string) error {
			if left[method]--; left[method] >= 0 {
				return errors.New("connection reset")
			}
			return nil
		}
		ctx, span := c.tracer.Start(t.Context(), "request")
		defer span.End()
		l, err := c.Acquire(ctx, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Second)
		l.Release(ctx)
		if got := c.spansOf(t, "lock.hold"); len(got) != 1 || !inOrder(got[0], "end=released", "[renewal failed at ", "[renewed at ", "[release unconfirmed at 7s]") || strings.Contains(got[0], "ERROR") {
			t.Errorf("%q", got)
		}
		if got := c.spansOf(t, "lock.acquire"); len(got) != 1 || !strings.Contains(got[0], "attempts=3") {
			t.Errorf("%q", got)
		}
	})
}
