package oteltest

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/enginetest"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/otellock"
)

// TestConformance checks that a wrapped engine conforms.
func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open: func(testing.TB) driver.Engine { return otellock.Engine(mem.New(nil)) },
		Unit: time.Second, Bubble: synctest.Test,
	})
}

// seen is an engine that records the labels of each lease ID's requests.
type seen struct {
	driver.Forward
	labels map[lockinfo.LeaseID][]map[string]string
}

func (s *seen) note(req driver.AcquireRequest) {
	s.labels[req.LeaseID] = append(s.labels[req.LeaseID], req.Holder.Labels)
}

func (s *seen) Acquire(ctx context.Context, req driver.AcquireRequest) (driver.AcquireReply, error) {
	s.note(req)
	if len(s.labels[req.LeaseID]) < 3 {
		return driver.AcquireReply{}, errors.New("connection reset")
	}
	return s.Forward.Acquire(ctx, req)
}

func (s *seen) AcquireAll(ctx context.Context, reqs []driver.AcquireRequest) (driver.AllReply, error) {
	for _, req := range reqs {
		s.note(req)
	}
	return driver.AllReply{}, errors.New("connection reset")
}

// TestRepeatsCarryTheSameSpan checks that all repeats of a request have the same label, with the
// caller's span, although the client sends them from other goroutines.
func TestRepeatsCarryTheSameSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &seen{driver.Forward{Engine: mem.New(nil)}, map[lockinfo.LeaseID][]map[string]string{}}
		client, err := holdfast.New(otellock.Engine(engine), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, span := sdk.NewTracerProvider().Tracer("test").Start(t.Context(), "request")
		defer span.End()
		l, err := client.Acquire(ctx, "a", &holdfast.AcquireOptions{Labels: map[string]string{"team": "a"}})
		if err != nil {
			t.Fatal(err)
		}
		ls, err := client.AcquireAll(ctx, []string{"b", "c"}, &holdfast.AcquireOptions{Labels: map[string]string{"team": "a"}})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"team": "a", "traceparent": "00-" + span.SpanContext().TraceID().String() + "-" + span.SpanContext().SpanID().String() + "-01"}
		if len(engine.labels) != 3 {
			t.Errorf("%d lease IDs, want 3", len(engine.labels))
		}
		for _, requests := range engine.labels {
			if len(requests) < 3 {
				t.Errorf("%d requests, want 3 at least", len(requests))
			}
			for _, labels := range requests {
				if !maps.Equal(labels, want) {
					t.Errorf("labels %v, want %v", labels, want)
				}
			}
		}
		if err := errors.Join(l.Release(ctx), ls.Release(ctx), client.Close()); err != nil {
			t.Error(err)
		}
	})
}

// labelsOf returns the holder's labels in the store after an acquire under ctx.
func labelsOf(t *testing.T, ctx context.Context, given map[string]string) map[string]string {
	t.Helper()
	store := mem.New(nil)
	req := driver.AcquireRequest{Name: "a", LeaseID: lockinfo.NewLeaseID(), TTL: time.Minute, Holder: lockinfo.Holder{Labels: given}}
	if _, err := otellock.Engine(store).Acquire(ctx, req); err != nil {
		t.Fatal(err)
	}
	lock, err := store.Inspect(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	return lock.Holders[0].Holder.Labels
}

// TestTraceParent checks when the label traceparent is added: only for sampled spans, and never
// over the caller's own.
func TestTraceParent(t *testing.T) {
	sampled, span := sdk.NewTracerProvider().Tracer("test").Start(t.Context(), "sampled")
	defer span.End()
	unsampled, other := sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample())).Tracer("test").Start(t.Context(), "unsampled")
	defer other.End()
	if got := labelsOf(t, t.Context(), nil); len(got) > 0 {
		t.Errorf("without a span: %v", got)
	}
	if got := labelsOf(t, unsampled, nil); len(got) > 0 {
		t.Errorf("with a span that nobody records: %v", got)
	}
	if got := labelsOf(t, sampled, map[string]string{"traceparent": "mine"}); got["traceparent"] != "mine" {
		t.Errorf("the caller's own: %v", got)
	}
	given := map[string]string{"team": "a"}
	if got := labelsOf(t, sampled, given); len(got) != 2 || len(got["traceparent"]) != 55 {
		t.Errorf("with a span: %v", got)
	}
	if len(given) != 1 {
		t.Errorf("the caller's labels were changed: %v", given)
	}
}

// TestForgedTraceParent checks that an invalid traceparent in the store causes neither a link nor a
// panic.
func TestForgedTraceParent(t *testing.T) {
	good := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for parent, links := range map[string]int{
		good: 1, "": 0, "-": 0, "---": 0, "01" + good[2:]: 0, good[:54]: 0, good + "-": 0, good[:53] + "zz": 0,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": 0, "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newTraced(t, otellock.Options{})
			c.telemetry.Observe(holdfast.Event{
				Kind: holdfast.Acquired, Context: t.Context(), Time: time.Now(), Name: "a", LeaseID: "1", Key: "1",
				Holder: holdfast.Holder{Labels: map[string]string{"traceparent": parent}},
			})
			c.telemetry.Observe(holdfast.Event{Kind: holdfast.Released, Context: t.Context(), Time: time.Now(), LeaseID: "1", Key: "1"})
			for _, s := range c.recorder.Ended() {
				if got := len(s.Links()); got != links {
					t.Errorf("%s has %d links for %q, want %d", s.Name(), got, parent, links)
				}
			}
		})
	}
}

// TestWithHold checks that WithHold returns the span of a lease, whether the lease's event has
// arrived or not. The span ends with the lease, even if its event never arrives.
func TestWithHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{})
		deaf, err := holdfast.New(mem.New(nil), nil) // has no Observer
		if err != nil {
			t.Fatal(err)
		}
		hold := func(client *holdfast.Client, wait func()) (span trace.SpanContext) {
			err := client.Do(t.Context(), "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
				wait()
				span = trace.SpanContextFromContext(c.telemetry.WithHold(ctx))
				if again := trace.SpanContextFromContext(c.telemetry.WithHold(ctx)); !again.Equal(span) {
					t.Error("the span is another one the second time")
				}
				time.Sleep(time.Second)
				return nil
			})
			if err != nil || !span.IsValid() {
				t.Errorf("no span: %v", err)
			}
			return span
		}
		hold(c.Client, func() {})
		hold(c.Client, synctest.Wait)
		hold(deaf, func() {})
		if err := deaf.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		got := c.spansOf(t, "lock.hold")
		if len(got) != 3 || !inOrder(got[2], "lock.hold 1s mode=exclusive name=a") {
			t.Errorf("%q, want 3 spans of 1s", got)
		}
		if ctx := c.telemetry.WithHold(t.Context()); ctx != t.Context() {
			t.Error("a context without a lease is another one")
		}
		l, err := c.Acquire(t.Context(), "b", nil)
		if err != nil {
			t.Fatal(err)
		}
		l.Release(t.Context())
		synctest.Wait()
		if ctx := c.telemetry.WithHold(l.Context()); trace.SpanContextFromContext(ctx).IsValid() {
			t.Error("a lease that has ended has a span")
		}
	})
}

// TestWithHoldInCohort checks that each turn of a cohort has a span of its own, even if the
// Observer is late.
func TestWithHoldInCohort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{})
		late := make(chan struct{})
		cohort, err := holdfast.New(mem.New(nil), &holdfast.Options{Cohorts: true, Observer: func(e holdfast.Event) {
			if e.Kind == holdfast.Released {
				<-late
			}
			c.telemetry.Observe(e)
		}})
		if err != nil {
			t.Fatal(err)
		}
		var spans [2]trace.SpanContext
		var turns sync.WaitGroup
		for i := range spans {
			turns.Go(func() {
				_ = cohort.Do(t.Context(), "a", nil, func(ctx context.Context, l *holdfast.Lease) error {
					spans[i] = trace.SpanContextFromContext(c.telemetry.WithHold(ctx))
					time.Sleep(time.Millisecond)
					return nil
				})
			})
			synctest.Wait()
		}
		turns.Wait()
		close(late)
		if err := cohort.Close(); err != nil {
			t.Error(err)
		}
		if !spans[0].IsValid() || !spans[1].IsValid() || spans[0].Equal(spans[1]) {
			t.Errorf("the spans of two turns: %v, %v", spans[0], spans[1])
		}
		if got := c.spansOf(t, "lock.hold"); len(got) != 2 {
			t.Errorf("%q, want 2 spans", got)
		}
	})
}

// TestClose checks that Close ends all open spans, and that closed telemetry begins no more.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTraced(t, otellock.Options{})
		l, err := c.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		go c.Do(t.Context(), "a", nil, func(context.Context, *holdfast.Lease) error { return nil })
		time.Sleep(time.Second)
		if err := c.telemetry.Close(); err != nil {
			t.Error(err)
		}
		if got := len(c.recorder.Ended()); got != 3 {
			t.Errorf("%d spans have ended, want all 3", got)
		}
		l.Release(t.Context())
		synctest.Wait()
		if got := len(c.recorder.Started()); got != 3 {
			t.Errorf("%d spans were begun, want no other", got)
		}
	})
}

func TestNew(t *testing.T) {
	if _, err := otellock.New(&otellock.Options{}); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("without providers: %v", err)
	}
}
