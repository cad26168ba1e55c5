// Package otellock makes spans and metrics of locks for OpenTelemetry. It has the
// metrics of promlock. It needs the API only: the program chooses the SDK, or none.
//
// # What
//
// [Telemetry] is an Observer. Each acquire is a span lock.acquire, from the call to its end,
// and each lease a span lock.hold. Both are children of the span of the context that the lock
// was acquired under. [Engine] wraps an engine so that the spans of waiters link to the span
// under which the holder acquired the lock. [Telemetry.WithHold] makes the work under the
// lock a part of lock.hold. docs/metrics.md has every attribute, event and metric.
//
// # Example
//
//	telemetry, err := otellock.New(&otellock.Options{
//		TracerProvider: otel.GetTracerProvider(),
//		MeterProvider:  otel.GetMeterProvider(),
//		NameLabel:      otellock.FoldNames,
//	})
//	…
//	client, err := holdfast.New(otellock.Engine(engine), &holdfast.Options{Observer: telemetry.Observe})
//
// # Guarantees
//
//   - A span ends whatever ends the wait or the lease: a grant, a refusal, a context that
//     ends, a release, a loss, a lease that was left, a panic of the work. When Close of
//     the client has returned, none is open.
//   - A lost lease is an error, with its cause. A lock that another client holds is not.
//   - No span and no metric has a lease ID, with which the lease could be released.
//   - No acquire, renewal, loss or release waits for it, and no request is added.
//   - Metrics have a bounded number of series, like promlock's.
//
// # What is not promised
//
// The Observer is called a little later, so spans are made afterwards, with the times
// of the events. A request that a client of the store traces by itself is
// therefore a child of the caller's span, not of lock.acquire. A span is exported when it
// ends: a leader of a week has a span of a week, and a sampler sees no attributes at the
// beginning of a span.
//
// Names of locks, and the holders' descriptions of themselves, are attributes of spans:
// TraceName decides about the names. With [Engine], clients that can read the store, or are
// refused the lock, see the trace ID of its holder. Any client that can acquire a lock can
// invent a link, because only the form of a link is checked.
//
// # Clocks
//
// Spans begin and end by the clock of this process, never by the store's.
//
// # Fencing
//
// lock.hold has the fencing token, so that a refused write can be traced to its lease.
// Claims are counted if a guard has the Observer; see package fence.
//
// # Errors
//
// [New] fails without any provider, with holdfast.ErrInvalid, or if the MeterProvider refuses an
// instrument.
//
// # Testing
//
// Give New a TracerProvider with package tracetest of the SDK, and close the client before
// you look: it waits until all events are delivered.
package otellock
