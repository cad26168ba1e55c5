package otellock_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/otellock"
)

func Example() {
	ctx := context.Background()
	telemetry, err := otellock.New(&otellock.Options{
		TracerProvider: otel.GetTracerProvider(), // the providers that the program has set
		MeterProvider:  otel.GetMeterProvider(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = telemetry.Close() }()
	engine, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(otellock.Engine(engine), &holdfast.Options{Observer: telemetry.Observe})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()

	err = client.Do(ctx, "orders/42", nil, func(ctx context.Context, _ *holdfast.Lease) error {
		_, charge := otel.Tracer("shop").Start(telemetry.WithHold(ctx), "charge the card") // a child of lock.hold
		defer charge.End()
		fmt.Println("charged")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: charged
}
