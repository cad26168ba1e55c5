package oteltest

import (
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/mem"
	"github.com/holdfast-locks/holdfast/otellock"
)

// pair returns a function that acquires and releases a lock in memory, under a sampled span.
func pair(tb testing.TB, tracers trace.TracerProvider, meters metric.MeterProvider, wrap func(driver.Engine) driver.Engine) func() {
	opts := &holdfast.Options{Logger: slog.New(slog.DiscardHandler)}
	if tracers != nil || meters != nil {
		telemetry, err := otellock.New(&otellock.Options{TracerProvider: tracers, MeterProvider: meters, NameLabel: otellock.FoldNames})
		if err != nil {
			tb.Fatal(err)
		}
		opts.Observer = telemetry.Observe
	}
	client, err := holdfast.New(wrap(mem.New(nil)), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := client.Close(); err != nil {
			tb.Error(err)
		}
	})
	ctx, span := sdk.NewTracerProvider().Tracer("test").Start(tb.Context(), "request")
	tb.Cleanup(func() { span.End() })
	return func() {
		lease, err := client.TryAcquire(ctx, "orders/42", nil)
		if err != nil {
			tb.Fatal(err)
		}
		if err := lease.Release(ctx); err != nil {
			tb.Fatal(err)
		}
	}
}

func bare(e driver.Engine) driver.Engine { return e }

// BenchmarkPair measures what telemetry adds to a pair of acquire and release.
func BenchmarkPair(b *testing.B) {
	spans := sdk.NewTracerProvider()
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"off", pair(b, nil, nil, bare)},
		{"engine", pair(b, nil, nil, otellock.Engine)},
		{"spans", pair(b, spans, nil, bare)},
		{"metrics", pair(b, nil, sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())), bare)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.run()
			}
		})
	}
}
