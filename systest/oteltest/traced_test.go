package oteltest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/hook"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/otellock"
)

// A traced is a client whose spans are recorded.
type traced struct {
	*holdfast.Client
	lose      func(method string) error // the reply to a request that was carried out; or nil
	telemetry *otellock.Telemetry
	recorder  *tracetest.SpanRecorder
	tracer    trace.Tracer
	leaseIDs  []holdfast.LeaseID // that the Observer has heard of
}

// newTraced returns a client on a memory of its own. At the end of t it is closed, and
// then no span may be open, and none may have a lease ID in it.
func newTraced(t *testing.T, opts otellock.Options) *traced {
	t.Helper()
	c := &traced{recorder: tracetest.NewSpanRecorder()}
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(c.recorder))
	opts.TracerProvider = provider
	c.tracer = provider.Tracer("test")
	var err error
	if c.telemetry, err = otellock.New(&opts); err != nil {
		t.Fatal(err)
	}
	c.Client, err = holdfast.New(otellock.Engine(&hook.Engine{Forward: driver.Forward{Engine: mem.New(nil)}, Each: c.each}), &holdfast.Options{
		TTL: 10 * time.Second, Holder: holdfast.Holder{Host: "web-3", PID: 812},
		Observer: holdfast.Observers(c.telemetry.Observe, func(e holdfast.Event) { c.leaseIDs = append(c.leaseIDs, e.LeaseID, e.Key) }),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.closed(t) })
	return c
}

// closed closes the client, and checks that no span is left open or says too much. It
// returns all spans in the order in which they ended.
func (c *traced) closed(t *testing.T) []sdk.ReadOnlySpan {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	ended := c.recorder.Ended()
	for _, begun := range c.recorder.Started() {
		if !slices.ContainsFunc(ended, func(s sdk.ReadOnlySpan) bool { return s.SpanContext().SpanID() == begun.SpanContext().SpanID() }) {
			t.Errorf("%s is open", begun.Name())
		}
	}
	for _, span := range ended {
		text := fmt.Sprint(span.Name(), span.Attributes(), span.Events(), span.Links(), span.Status())
		for _, id := range c.leaseIDs {
			if id != "" && strings.Contains(text, string(id)) {
				t.Errorf("a span has the lease ID: %s", text)
			}
		}
	}
	return ended
}

// locks returns the spans of locks as lines, those of others left out; see line.
func (c *traced) locks(t *testing.T) (lines []string) {
	t.Helper()
	for _, span := range c.closed(t) {
		if strings.HasPrefix(span.Name(), "lock.") {
			lines = append(lines, line(span))
		}
	}
	return lines
}

// line writes a span: its name, how long it took, its attributes by their keys without
// holdfast, its status if it is an error, its events, and how many links it has.
func line(span sdk.ReadOnlySpan) string {
	parts := []string{span.Name(), span.EndTime().Sub(span.StartTime()).String()}
	for _, a := range span.Attributes() {
		if a.Key != "holdfast.token" { // is a time
			parts = append(parts, strings.TrimPrefix(string(a.Key), "holdfast.")+"="+a.Value.String())
		}
	}
	slices.Sort(parts[2:])
	if span.Status().Code == codes.Error {
		parts = append(parts, "ERROR("+span.Status().Description+")")
	}
	for _, e := range span.Events() {
		parts = append(parts, "["+e.Name+" at "+e.Time.Sub(span.StartTime()).String()+"]")
	}
	if n := len(span.Links()); n > 0 {
		parts = append(parts, fmt.Sprint("links=", n))
	}
	return strings.Join(parts, " ")
}

// compare fails t unless the lines are these.
func compare(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("spans:\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// each is what every request goes through: it loses the reply if the test says so.
func (c *traced) each(_ context.Context, req hook.Request, send func() error) error {
	err := send()
	if c.lose != nil {
		err = cmp.Or(c.lose(req.Method), err)
	}
	return err
}

// spansOf returns the lines of the spans of a name that have ended.
func (c *traced) spansOf(t *testing.T, name string) (lines []string) {
	t.Helper()
	synctest.Wait()
	for _, span := range c.recorder.Ended() {
		if span.Name() == name {
			lines = append(lines, line(span))
		}
	}
	return lines
}

// inOrder reports whether s has all parts, in their order.
func inOrder(s string, parts ...string) bool {
	for _, part := range parts {
		_, after, found := strings.Cut(s, part)
		if !found {
			return false
		}
		s = after
	}
	return true
}
