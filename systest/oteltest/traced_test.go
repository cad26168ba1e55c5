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
	lose      func(method string) error // may lose the reply to an executed request; or nil
	telemetry *otellock.Telemetry
	recorder  *tracetest.SpanRecorder
	tracer    trace.Tracer
	leaseIDs  []holdfast.LeaseID // of all events
}

// newTraced returns a client on a new store in memory. The test closes the client when it ends;
// then all spans must have ended, and no span may contain a lease ID.
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

// closed closes the client, and checks that no span is open and that none contains a lease ID. It
// returns all spans in the order of their ends.
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

// locks returns the lines of the spans whose names begin with "lock."; see line.
func (c *traced) locks(t *testing.T) (lines []string) {
	t.Helper()
	for _, span := range c.closed(t) {
		if strings.HasPrefix(span.Name(), "lock.") {
			lines = append(lines, line(span))
		}
	}
	return lines
}

// line formats a span: its name, its duration, its attributes without the prefix holdfast, its
// status if it is an error, its events, and the number of its links.
func line(span sdk.ReadOnlySpan) string {
	parts := []string{span.Name(), span.EndTime().Sub(span.StartTime()).String()}
	for _, a := range span.Attributes() {
		if a.Key != "holdfast.token" { // varies: it is a time
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

// compare fails t unless got equals want.
func compare(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("spans:\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// each handles every request of the engine. It loses the reply if c.lose returns an error.
func (c *traced) each(_ context.Context, req hook.Request, send func() error) error {
	err := send()
	if c.lose != nil {
		err = cmp.Or(c.lose(req.Method), err)
	}
	return err
}

// spansOf returns the lines of the ended spans with a name.
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

// inOrder reports whether s contains all parts, in their order.
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
