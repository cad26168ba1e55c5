package otellock

import (
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/internal/tally"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name of the instrumentation scope of spans and metrics.
const scope = "github.com/holdfast-locks/holdfast/otellock"

// Options are the options of New. A zero field is default.
type Options struct {
	// TracerProvider makes the spans. Nil: there are none.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the metrics. Nil: there are none.
	MeterProvider metric.MeterProvider

	// NameLabel returns the attribute holdfast.name of metrics for the name of a
	// lock, a do-once key, a schedule, a collection of one-time tokens or a guarded
	// resource. Nil: metrics have no such attribute. FoldNames is one. Whatever it
	// returns, there are at most 200 values.
	NameLabel func(name string) string

	// TraceName returns the attribute holdfast.name of spans. Nil: it is the name of
	// the lock, which may reveal more about people than a system of traces should know.
	// The attribute is left out where TraceName returns "".
	TraceName func(name string) string

	// Renewals adds an event to the span lock.hold for each renewal. Without it there
	// are events only for failed renewals, and for the first success after a failure.
	// The span has the number of successful renewals in either case.
	Renewals bool
}

// FoldNames is a NameLabel, and a TraceName: it folds numbers, UUIDs, dates and
// hexadecimal words, so that orders/42 counts as orders/*; see [tally.Fold].
func FoldNames(name string) string { return tally.Fold(name) }

// Telemetry makes spans and metrics of locks. Its method Observe is an Observer,
// of one or of several clients. All methods are safe for concurrent use.
type Telemetry struct {
	spans   *spans   // nil without a TracerProvider
	metrics *metrics // nil without a MeterProvider
}

// New returns Telemetry. It fails if neither provider is given, or if the
// MeterProvider refuses an instrument.
func New(opts *Options) (*Telemetry, error) {
	t := &Telemetry{}
	if opts == nil || opts.TracerProvider == nil && opts.MeterProvider == nil {
		return nil, fmt.Errorf("otellock: %w options: neither a TracerProvider nor a MeterProvider is given", holdfast.ErrInvalid)
	}
	if opts.TracerProvider != nil {
		t.spans = newSpans(*opts)
	}
	if opts.MeterProvider != nil {
		var err error
		if t.metrics, err = newMetrics(opts.MeterProvider.Meter(scope), tally.New(opts.NameLabel)); err != nil {
			return nil, errors.Join(fmt.Errorf("otellock: %w", err), t.Close())
		}
	}
	return t, nil
}

// Observe is the Observer of a client: holdfast.Options{Observer: telemetry.Observe}.
func (t *Telemetry) Observe(e holdfast.Event) {
	if t.spans != nil {
		t.spans.observe(e)
	}
	if t.metrics != nil {
		t.metrics.observe(e)
	}
}

// Close ends the spans of clients that were not closed, and the callbacks of the
// MeterProvider. Close the clients first: then there is nothing left to end. It does not
// shut the providers down.
func (t *Telemetry) Close() error {
	if t.spans != nil {
		t.spans.close()
	}
	if t.metrics != nil {
		return t.metrics.close()
	}
	return nil
}
